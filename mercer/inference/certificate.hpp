// The error bound of predictions, from the true residual of the weights.
//   With H = K + D >= D, D the noise of the rows, r = y - A beta - H w, M = A' H^-1 A and q = a* -
//   A'H^-1 k*:
//     mean(x*) - exact = q'(beta - beta0) - k*' H^-1 r,
//     beta - beta0 = -M^-1 (A'w + A'H^-1 r),
//   and since k*'H^-1 k* <= k** and |M^-1/2 A'H^-1 r| <= |D^-1/2 r| (|r|/sqrt(s2) when D = s2 I),
//     |error| <= sqrt(k**) |D^-1/2 r| + sqrt(q'M^-1 q) (|D^-1/2 r| + |M^-1/2 A'w|)
//   plus the rounding of the product k*'w itself. Without a trend the second term is absent.
#pragma once

#include <optional>

#include "mercer/inference/observations.hpp"
#include "mercer/inference/posterior.hpp"
#include "mercer/inference/problem.hpp"

namespace mercer::inference {

class ErrorBound {
 public:
  struct Residuals {
    double residual = 0;      // of the latent function: Certificate::residual
    double trend_defect = 0;  // |M^-1/2 A'w|
  };
  /// `x` are the training points on the model's scale.
  ErrorBound(const kernels::Kernel& kernel, const Weights& weights, Residuals residuals,
             ConstMatrixView x);

  /// Bounds on the model's scale, from k** and the basis row a* of each point; uses
  /// sqrt(q'M^-1 q) <= sqrt(a*'M^-1 a*) + sqrt(k**).
  Vector operator()(ConstVectorView prior_variance, ConstMatrixView basis) const;

  /// The same with Gaussian noise where the variance is known: `explained` is at least k*'H^-1 k*,
  /// `trend` at least q'M^-1 q.
  double where_known(double prior_variance, double explained, double trend) const;

 private:
  Residuals residuals_;
  double rounding_ = 0;  // relative rounding times sum_j sqrt(k_jj) |w_j|
  Matrix beta_covariance_;
};

/// How far rounding can take k*'H^-1 k* from its exact value, e being the error of one kernel value
/// relative to sqrt(k_ii k_jj), u = H^-1 k* and v = L^-1 k*:
///   H is computed with an error of e sqrt(k_ii k_jj) an entry; its factor is that of H + D with
///   |D_ij| <= g sqrt(h_ii h_jj) (Higham 2002, theorems 10.3 and 8.5: one g for the factor, two for
///   the triangular solve); so |u'(E + D)u| <= (e + 3 g) tr(H) |u|^2, and |u|^2 <= |v|^2/min D;
///   k* is computed with an error of e sqrt(k** k_jj): 2 |u'dk*| <= 2 e sqrt(k** tr(K)) |u|;
///   |v|^2, k** and their difference are rounded as well.
class VarianceRounding {
 public:
  /// `x` are the training points on the model's scale.
  VarianceRounding(const kernels::Kernel& kernel, linalg::Diagonal noise, ConstMatrixView x);

  /// For `explained` = |v|^2 by a Cholesky factor, from the prior variances k**.
  Vector direct(ConstVectorView prior_variance, ConstVectorView explained) const;
  /// For k*'u + u'r with r = k* - H u computed in double; the columns of u are the solves.
  Vector iterative(ConstVectorView prior_variance, ConstMatrixView u) const;

 private:
  linalg::Diagonal noise_;
  double trace_ = 0;  // of K
  Index size_ = 0;    // N
  Vector prior_sd_;   // sqrt(k_jj)
};

/// How far q'M^-1 q, the trend's part of a variance, is from the exact one when q and M come from
/// solves with Certificate::trend_residual: M is known to that share of itself, q to that share of
/// sqrt(k**) in the M^-1 norm.
double trend_variance_error(double trend_variance, double prior_variance, double residual);

/// b - (K + D) x in double, one product.
Matrix true_residual(const kernels::Kernel& kernel, const linalg::Diagonal& noise, const Matrix& x,
                     ConstMatrixView b, ConstMatrixView solution);

/// The computed factor of H has L L' <= (1 + d) H; this is d, from the rounding of the factor (see
/// VarianceRounding) and H >= min D.
double factor_rounding(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                       const Matrix& x);

/// What rounding of the residual itself may add to sqrt(r'H^-1 r): r_i is a sum of products k_ij
/// w_j, known to about 2^-52 sqrt(k_ii) sum_j sqrt(k_jj) |w_j|, and H >= D. Sums err less than
/// their terms could, so this is what was found to hold on pairs of nearly equal rows, not a worst
/// case.
double residual_rounding(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                         const Matrix& x, ConstVectorView w);

/// Computes r with one product in double, and the bounds at the training points. `energy`: another
/// bound of sqrt(r'H^-1 r), where one is known.
Certificate certify(const Problem& problem, const linalg::Diagonal& noise, const Weights& weights,
                    const Observations& data, std::optional<double> energy = {});

}  // namespace mercer::inference
