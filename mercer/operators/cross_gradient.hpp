// Derivatives of weighted sums over the kernel values of two point sets: in the hyperparameters,
// and in the points of one of them (base points of sparse approximations).
// `cross_gradient` is sum_ij w(i, j) dk(a_i, b_j)/dtheta, `input_gradient` for every b_j the sum
// over i of w(i, j) dk(a_i, b_j)/db_j.
//   Cost: about one evaluation of all pairs in double by SIMD tiles on all threads, plus one
//         multiply-add per pair and ARD lengthscale, or two operations per pair and input. Memory:
//         a copy of both point sets; kernel values are not stored.
//   Same bits on any number of threads: rows of b are cut into blocks that depend on nothing else,
//   and the sums of the blocks are added in their order.
//   For one symmetric set use weighted_gradient (tiled_operator.hpp), which evaluates half as much.
#pragma once

#include "mercer/core/types.hpp"
#include "mercer/kernels/kernel.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

/// gradient(p) = sum_ij w(i, j) dk(a_i, b_j)/dtheta_p; a is M x d, b is N x d, w is M x N.
void cross_gradient(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                    ConstMatrixView w, VectorView gradient);

/// gradient(p) = sum_i w(i) dk(x_i, x_i)/dtheta_p.
void diagonal_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstVectorView w,
                       VectorView gradient);

/// out(j, :) += sum_i w(i, j) dk(a_i, b_j)/db_j; out is N x d. Where a_i = b_j and the kernel has a
/// cusp (matern12) the derivative is taken as 0.
void input_gradient(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                    ConstMatrixView w, MatrixView out);

}  // namespace mercer::operators
MERCER_API_END
