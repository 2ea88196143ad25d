// Likelihoods of which one observation depends on all C latent functions of its row. What
// Likelihood asks of one y and one f has no meaning for them; they answer for rows of C entries.
//   The curvature of a row is W = -d^2 log p / df^2 = diag(w) - w w' / 1'w with weights w >= 0. It
//   is singular (W 1 = 0): adding a constant to all functions of a row changes nothing. So nothing
//   here or in inference is divided by W; with q = w^1/2 / |w^1/2| it has the root
//     R = diag(w^1/2) (I - q q'),  W = R R'.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

MERCER_API_BEGIN
namespace mercer::likelihoods {

/// Probabilities of the classes when the functions of a row are jointly normal.
struct ClassProbabilities {
  Vector p;  // C, sum one
  /// The largest standard error of an entry where they were found by random numbers; zero: exact
  /// to rounding. Unset: approximated by a formula whose error is not known.
  std::optional<double> standard_error = 0.0;
};

class CoupledLikelihood : public Likelihood {
 public:
  const CoupledLikelihood* coupled() const final { return this; }

  /// log p(y | f) of one row.
  virtual double row_log_density(ConstVectorView y, ConstVectorView f) const = 0;
  /// The same, its gradient g in f and the weights w of its curvature, C each.
  virtual double row_derivatives(ConstVectorView y, ConstVectorView f, VectorView g,
                                 VectorView w) const = 0;
  /// out_k = tr(Sigma dW/df_k) for any symmetric C x C matrix Sigma that is known by E = Sigma W
  /// only; linear in E.
  virtual void curvature_slope(ConstVectorView f, ConstMatrixView e, VectorView out) const = 0;
  /// Of f ~ N(mean, covariance), C and C x C.
  virtual ClassProbabilities class_probabilities(ConstVectorView mean,
                                                 ConstMatrixView covariance) const = 0;

  // Of a single y and f: each throws InvalidArgument.
  LogDensity log_density(double y, double f) const final;
  double predictive_quantile(double p, double mean, double variance) const final;

 protected:
  Predictive moments(double f) const final;
  double cdf(double y, double f) const final;
};

}  // namespace mercer::likelihoods
MERCER_API_END
