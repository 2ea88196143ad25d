// The log marginal likelihood of Gaussian-process regression and its gradient, by Cholesky.
//   L = -1/2 (y - A beta)' H^-1 (y - A beta) - 1/2 log|H| - N/2 log 2 pi,  H = K + D,
//   dL/dtheta = 1/2 w' dH w - 1/2 tr(H^-1 dH),  w = H^-1 (y - A beta),
// with D the noise of the rows (noise.hpp) and beta the generalised least-squares estimate (so L is
// the profile likelihood; by the envelope theorem its gradient has no term in beta).
//   Source: Rasmussen & Williams (2006), eqs. 5.8 and 5.9.
//   Cost:   N^3/3 flops for the value, N^3 with the gradient; 8 N^2 bytes in all.
#pragma once

#include "mercer/inference/mean_function.hpp"
#include "mercer/inference/noise.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/linalg/cholesky.hpp"

namespace mercer::inference {

/// One regression problem on standardised data: points are rows of x.
struct RegressionProblem {
  kernels::Kernel kernel;
  double noise = 0.1;  // s2, the noise variance of one observation
  MeanKind mean = MeanKind::zero;
  std::vector<Index> trend_left_out;  // inputs that are not part of a linear mean, ascending

  /// Kernel parameters, then log noise.
  Vector log_parameters() const;
  void set_log_parameters(ConstVectorView theta);
  std::vector<std::string> parameter_names() const;
  /// The basis of the mean at the rows of x.
  Matrix basis(ConstMatrixView x) const { return mean_basis(mean, x, trend_left_out); }
};

struct Evidence {
  double value = 0;  // log marginal likelihood
  Vector gradient;   // in problem.log_parameters(), empty when not asked for
};

/// Of all rows, those that were merged into others included: exact_evidence(problem, {x, y}, true).
Evidence exact_evidence(const RegressionProblem& problem, const Observations& data,
                        bool with_gradient);

/// What a solved problem keeps for predictions.
struct Weights {
  Vector w;                // H^-1 (y - A beta)
  Vector beta;             // mean coefficients
  Matrix basis_solves;     // H^-1 A, N x q
  Matrix beta_covariance;  // (A' H^-1 A)^-1
};

/// beta and w from the block solution [H^-1 y, H^-1 A].
Weights combine_solves(ConstMatrixView solves, ConstMatrixView basis);

double exact_evidence_bytes(Index n);
double exact_evidence_flops(Index n, bool with_gradient);

}  // namespace mercer::inference
