// The error bound of predictions, from the true residual of the weights.
//   With H = K + s2 I >= s2 I, r = y - A beta - H w, M = A' H^-1 A and q = a* - A'H^-1 k*:
//     mean(x*) - exact = q'(beta - beta0) - k*' H^-1 r,
//     beta - beta0 = -M^-1 (A'w + A'H^-1 r),
//   and since k*'H^-1 k* <= k** and |M^-1/2 A'H^-1 r| <= |r|/sqrt(s2),
//     |error| <= sqrt(k**) |r|/sqrt(s2) + sqrt(q'M^-1 q) (|r|/sqrt(s2) + |M^-1/2 A'w|)
//   plus the rounding of the product k*'w itself. Without a trend the second term is absent.
#pragma once

#include "mercer/models/regression.hpp"

namespace mercer::models {

class ErrorBound {
 public:
  /// `x` are the training points on the model's scale.
  ErrorBound(const inference::RegressionProblem& problem, double noise,
             const inference::Weights& weights, const Certificate& certificate, ConstMatrixView x);

  /// Bounds on the model's scale, from k** and the basis row a* of each point; uses
  /// sqrt(q'M^-1 q) <= sqrt(a*'M^-1 a*) + sqrt(k**).
  Vector operator()(ConstVectorView prior_variance, ConstMatrixView basis) const;

 private:
  double residual_ = 0;      // |r| / sqrt(s2)
  double trend_defect_ = 0;  // |M^-1/2 A'w|
  double rounding_ = 0;      // relative rounding times sum_j sqrt(k_jj) |w_j|
  Matrix beta_covariance_;
};

/// Computes r with one product in double, and the bounds at the training points.
Certificate certify(const inference::RegressionProblem& problem, double noise,
                    const inference::Weights& weights, ConstMatrixView x, ConstVectorView y,
                    double target_sd);

}  // namespace mercer::models
