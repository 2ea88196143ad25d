// Laplace's approximation (laplace/laplace.hpp) with the prior of fitc, for classes and counts:
//     K~ = Q + G,  G = diag(K - Q),  B~ = I + S K~ S = Delta + S V'V S,  S = W^1/2, Delta = 1 + W
//     G.
// With omega = W / Delta = (G + W^-1)^-1 and B = I + V omega V',
//     (K~ + W^-1)^-1 = omega - omega V'B^-1 V omega,   log|B~| = sum log Delta + log|B|,
//     Sigma = (K~^-1 + W)^-1 = G/Delta + Delta^-1 V'B^-1 V Delta^-1:
// nothing is divided by W, which may be zero. The gradient is that of exact_laplace.hpp,
//     2 dF = tr(T dK~),   T = a a' - (K~ + W^-1)^-1 + s a' + a s',
// and goes through the sums of sparse_gradient.hpp; it holds in the base points too.
//   Source: Naish-Guzman & Holden (2008), with expectation propagation; Vanhatalo, Pietilainen &
//           Vehtari (2010), with Laplace's approximation.
//   Cost:   N m^2 flops a Newton step and function, 6 N m^2 more for the gradient; 8 N m bytes for
//   V. When not: functions that the likelihood couples (softmax): B~ is no diagonal and low rank
//   then.
#pragma once

#include <vector>

#include "mercer/inference/inference.hpp"
#include "mercer/inference/laplace/laplace_system.hpp"
#include "mercer/inference/sparse/base_factor.hpp"

namespace mercer::inference {

/// Solves with B~ of independent functions by the factor of B, m x m.
class FitcLaplaceSystem final : public LaplaceSystem {
 public:
  FitcLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x, const Matrix& base);

  Index points() const override { return v_.rows(); }
  void multiply(ConstMatrixView x, MatrixView kx) const override;
  void set_curvature(const Curvature& curvature) override;
  const CurvatureRoot& root() const override { return root_; }
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                     const Observer& observer = {}) override;
  Explained explained(ConstMatrixView cross, double tolerance,
                      const Observer& observer = {}) override;
  std::int64_t products() const override { return products_; }
  CurvedDeterminant log_determinant(const LogDeterminantOptions& options,
                                    const Observer& observer = {}) override;
  const preconditioners::BuildReport& preconditioner_report() const override { return no_report_; }

  const BaseFactor& base() const { return base_; }
  const Matrix& v() const { return v_; }     // V', N x m
  const Vector& left() const { return g_; }  // G
  /// Of function c at the last curvature; they factor B when that is not done yet.
  const Matrix& factor(Index c);  // L_B
  Vector delta(Index c) const;
  Vector omega(Index c) const;
  /// (K~ + W^-1)^-1 z.
  Vector inverse_times(Index c, ConstVectorView z);
  double log_det();

 private:
  BaseFactor base_;
  Matrix v_;
  Vector g_;
  CurvatureRoot root_;
  std::vector<Matrix> factors_;  // empty matrices: not factored yet
  mutable std::int64_t products_ = 0;
  preconditioners::BuildReport no_report_{.name = "none"};
};

std::unique_ptr<Inference> make_fitc_laplace(const InferenceSetup& setup);
EvaluationCost fitc_laplace_cost(const CostSetting& setting);

}  // namespace mercer::inference
