// Derivatives of sums over a kernel matrix in every log hyperparameter, by the reverse mode over
// the kernel tree: per strip, values forward, then d objective / d node backward.
//   Cost: about one evaluation in the same arithmetic, plus one multiply-add per pair and ARD
//         lengthscale.
#pragma once

#include "mercer/operators/detail/tree_pass.hpp"

namespace mercer::operators::detail {

/// kv = K v and gradient(p) = sum_c u_c' (dK/dtheta_p) v_c. In float32 only for points that were
/// prepared for it.
void product_with_gradient(const Program& program, const PointSet& points, Precision precision,
                           ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient);

/// gradient(p) = sum_ij s_ij dk(x_i, x_j)/dtheta_p, s symmetric: its lower triangle is read.
void weighted_gradient(const Program& program, ConstMatrixView x, ConstMatrixView s,
                       VectorView gradient);
/// The same with w_i w_j - s_ij in place of s_ij.
void weighted_gradient(const Program& program, ConstMatrixView x, ConstVectorView w,
                       ConstMatrixView s, VectorView gradient);

/// gradient(p) = u' (dK/dtheta_p) v for prepared points that are not sorted, in one thread. `pass`
/// is one over them, made for at least points.padded() rows; u and v have points.padded() entries,
/// zero beyond the points.
void outer_gradient(const PointSet& points, TreePass<double>& pass, const double* u,
                    const double* v, VectorView gradient);

}  // namespace mercer::operators::detail
