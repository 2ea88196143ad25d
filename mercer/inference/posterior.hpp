// What is known of the latent functions after the data, at fixed hyperparameters, and how it was
// found.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mercer/inference/evidence.hpp"
#include "mercer/inference/sparse/sparse_posterior.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/inference/weights.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// How far predictions are from the exact ones. For every x*
///   |mean(x*) - exact mean(x*)| <= sqrt(k**) residual + trend and rounding terms.
///   Gaussian noise:  residual >= sqrt(r'H^-1 r), r = y - A beta - H w: the smaller of |D^-1/2 r|,
///                    which is |r|/sqrt(s2) when the noise variances D are equal, and, where H was
///                    factored, |L^-1 r| with its rounding.
///   Laplace:         residual = sqrt(r'K r), r = grad log p - w, against the exact mode; a bound
///                    when the likelihood is log-concave and the mean zero. Functions that the
///                    likelihood couples all have the residual of their sum of r'K r.
struct Certificate {
  Vector residual = Vector::Zero(1);  // of every latent function; true, double precision
  double mean_error_bound = 0;        // the bound at its largest over the training points
  /// What the largest error of a mean probably is; no bound, and never above it. Unset in models of
  /// earlier programs.
  std::optional<double> mean_error_estimate;
  double accuracy = 0;  // the bound that was asked for, as a share of the target's sd; 0: none
  std::string accuracy_missed;  // why the bound is larger than that; empty: it is not
  // False: the likelihood is not log-concave, or Laplace's approximation has a mean.
  bool rigorous = true;
  double relative_residual = 0;  // Gaussian noise only: |r| / |y|
  double residual_norm = 0;      // Gaussian noise only: |r|, standardised units
  double trend_defect = 0;       // |M^-1/2 A'w|, M = A'H^-1 A: how far beta is from optimal
  double trend_residual = 0;  // at least |H^-1/2 R M^-1/2|, R = A - H B, B the solves of the trend
  // Gaussian noise only: what a factorisation had to add to every noise variance. Residuals and
  // bounds are those of the noise as given, so they count it; variances are at most too large.
  double jitter = 0;
};

/// One latent function after the data. Its mean at x* is a*'beta + k*'w + offset, and its variance
/// the one that observations with the noise D leave, H = K + D.
struct LatentFunction {
  Weights weights;
  linalg::Diagonal noise;  // Gaussian: D, jitter included
  /// Laplace: W at the mode, N; may be zero. Coupled functions: the weights w of their W (softmax:
  /// p, times the weight of the row). Empty with Gaussian noise.
  Vector curvature;
  double offset = 0;
};

/// The posterior and what finding it did.
struct Posterior {
  std::vector<LatentFunction> functions;
  Certificate certificate;  // its mean_error_bound is on the scale of the observations
  LikelihoodValue evidence;
  SystemReport solve;                      // of the weights; with Laplace of all Newton steps
  int newton_steps = 0, halvings = 0;      // Laplace only
  std::optional<double> newton_decrement;  // Laplace: see LaplaceMode::decrement
  double jitter = 0;
  preconditioners::BuildReport preconditioner;  // without a name when there is none
  double build_seconds = 0;
  /// Of an approximation: what predictions are made from. `functions` then has the coefficients of
  /// the mean, and as weights those of the base points (rra: of the rows). Null otherwise.
  std::shared_ptr<const SparsePosterior> sparse;
};

}  // namespace mercer::inference
MERCER_API_END
