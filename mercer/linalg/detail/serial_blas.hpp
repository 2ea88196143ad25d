// OpenBLAS on one thread: mercer cuts its work into fixed tiles and runs those in parallel, so that
// results are the same bits on any number of threads. For the sources of linalg only.
#pragma once

#include "mercer/core/openmp.hpp"

namespace mercer::linalg::detail {

/// While it lives, calls of BLAS and LAPACK from this thread run on this thread. Cheap after the
/// first time. The OpenMP flavour of OpenBLAS has its number of threads back afterwards; the
/// pthreads flavour has one number for the whole process, and that stays 1.
/// Throws DoesNotFit when a limit on address space leaves too little for OpenBLAS.
class SerialBlas {
 public:
  SerialBlas();

 private:
  SerialOpenMp openmp_;
};

}  // namespace mercer::linalg::detail
