// Derivatives of sums over a kernel matrix in every log hyperparameter, by the reverse mode over
// the kernel tree: per strip, values forward, then d objective / d node backward.
//   Cost: about one evaluation in double, plus one multiply-add per pair and ARD lengthscale.
#pragma once

#include "mercer/operators/detail/point_set.hpp"

namespace mercer::operators::detail {

/// kv = K v and gradient(p) = sum_c u_c' (dK/dtheta_p) v_c.
void product_with_gradient(const Program& program, const PointSet& points, ConstMatrixView u,
                           ConstMatrixView v, MatrixView kv, VectorView gradient);

/// gradient(p) = sum_ij s_ij dk(x_i, x_j)/dtheta_p, s symmetric: its lower triangle is read.
void weighted_gradient(const Program& program, ConstMatrixView x, ConstMatrixView s,
                       VectorView gradient);
/// The same with w_i w_j - s_ij in place of s_ij.
void weighted_gradient(const Program& program, ConstMatrixView x, ConstVectorView w,
                       ConstMatrixView s, VectorView gradient);

}  // namespace mercer::operators::detail
