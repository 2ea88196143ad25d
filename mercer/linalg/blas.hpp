// Dense products through BLAS. OpenBLAS runs on one thread; mercer cuts the work into fixed panels
// and runs those in parallel, so that the result is the same bits for any number of threads.
#pragma once

#include <span>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

enum class Transpose { no, yes };

/// c = alpha op(a) op(b) + beta c.
void gemm(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b, Transpose op_b,
          double beta, MatrixView c);

/// The same where the product and c are symmetric: about half of it is computed, and mirrored.
void symmetric_gemm(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b,
                    Transpose op_b, double beta, MatrixView c);
/// c = alpha a' a + beta c, both triangles written; for tall a the sum runs over fixed row panels.
void gram(double alpha, ConstMatrixView a, double beta, MatrixView c);

/// Solves op(l) x = b in place for lower-triangular l (columns of b in parallel panels).
void solve_lower(ConstMatrixView l, Transpose op, MatrixView b);

/// b = b op(l)^-1 in place for lower-triangular l (rows of b in parallel panels).
void solve_lower_right(ConstMatrixView l, Transpose op, MatrixView b);
/// b = l b in place for lower-triangular l.
void multiply_lower(ConstMatrixView l, MatrixView b);

/// out[j] = sum_i x(i, j) y(i, j), summed in fixed chunks.
void column_dots(ConstMatrixView x, ConstMatrixView y, std::span<double> out);

/// Eigenvalues (ascending) and vectors of a symmetric matrix (LAPACK dsyevd).
struct SymmetricEigen {
  Vector values;
  Matrix vectors;
};
SymmetricEigen symmetric_eigen(ConstMatrixView a);

/// The kernels that OpenBLAS runs, e.g. "SkylakeX", "Haswell".
const char* blas_target();
/// What OPENBLAS_CORETYPE should say when the program starts; null when the choice of OpenBLAS is
/// fine. An OpenBLAS older than the processor does not know its model number and falls back to SSE
/// kernels (0.3.21 on a 2023 Xeon: "Prescott", 3 times slower).
const char* better_blas_target();

/// OpenBLAS maps a buffer of this size (on x86-64, at most) for every thread that is inside it at
/// the same time, and tries for ever when the system refuses.
inline constexpr double blas_buffer_bytes = 128.0 * 1048576;
/// Throws DoesNotFit when a limit on address space leaves less than that for every thread. Every
/// function here checks it the first time.
void check_blas_memory();

}  // namespace mercer::linalg
MERCER_API_END
