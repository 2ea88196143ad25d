// The Fortran LAPACK routines that mercer calls (they are inside OpenBLAS), and the little that
// turns views into BLAS arguments. For the sources of linalg only.
#pragma once

#include <algorithm>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/types.hpp"

extern "C" {
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);
void dtrtri_(const char* uplo, const char* diag, const int* n, double* a, const int* lda,
             int* info);
void dlauum_(const char* uplo, const int* n, double* a, const int* lda, int* info);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info);
}

namespace mercer::linalg::detail {

/// BLAS counts with int; a larger dimension is refused rather than wrapped.
inline int blas_int(Index value) {
  if (value > std::numeric_limits<int>::max())
    throw InvalidArgument("linalg: a dimension above 2^31 - 1 is more than BLAS can address");
  return static_cast<int>(value);
}

/// The distance between columns, valid for BLAS also when there is one column or none.
template <class View>
Index leading_dimension(const View& a) {
  return std::max<Index>({a.cols() > 1 ? a.outerStride() : 0, a.rows(), 1});
}

}  // namespace mercer::linalg::detail
