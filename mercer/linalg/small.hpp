// LAPACK and BLAS on small matrices, for use inside the tasks of a parallel loop: one thread, no
// allocation, raw pointers to column-major storage. T is float or double.
#pragma once

#include "mercer/linalg/blas.hpp"

namespace mercer::linalg {

/// A = L L' in place (lower triangle, n x n with leading dimension n). False when a pivot is not
/// positive; a is then spoilt.
bool small_cholesky(Index n, double* a);

/// l = the factor of A or, where rounding has made A indefinite, of A + e I with the least e among
/// 1e-12, 1e-10, .. times its largest diagonal entry that helps. Returns e, mostly 0. Throws
/// InvalidArgument, naming `owner`, when A is not finite.
double small_cholesky_raised(const Matrix& a, Matrix& l, const char* owner);

/// x = op(L)^-1 x for the lower-triangular n x n matrix l.
void small_solve_lower(Index n, const double* l, Transpose op, double* x);

/// c = alpha A'A + beta c, lower triangle only; A is k x n, so that its columns are the vectors
/// whose inner products are taken.
template <class T>
void small_gram(Index k, Index n, T alpha, const T* a, T beta, T* c);

/// c = A'B with A k x m and B k x n.
template <class T>
void small_transposed_product(Index k, Index m, Index n, const T* a, const T* b, T* c);

/// y = op(A) x, A is m x n.
template <class T>
void small_multiply(Index m, Index n, const T* a, Transpose op, const T* x, T* y);

}  // namespace mercer::linalg
