// What the program does for OpenBLAS beyond what the library may do as a guest (linalg/blas.hpp).
#pragma once

namespace mercer::cli {

/// Starts the program anew with OPENBLAS_CORETYPE set, if OpenBLAS runs older kernels than the
/// processor has and the variable is not set: OpenBLAS reads it when it is loaded, before main.
/// Returns when there is nothing to mend, or when it cannot be.
void restart_with_better_kernels(char** arguments);

/// Under a limit on address space: maps the buffers of OpenBLAS for all threads at once, because
/// OpenBLAS tries for ever when the system refuses one. Throws DoesNotFit when they do not fit.
void reserve_blas_buffers();

}  // namespace mercer::cli
