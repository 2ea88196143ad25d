// The log likelihood of a Gaussian process as a product of conditionals, each point given the m
// earlier points that it is most correlated with, and its exact gradient. A deterministic surrogate
// of the exact likelihood: for first values of hyperparameters, for comparing models, and as the
// model that exact gradients correct (training/corrections.cpp).
//   Source: Vecchia (1988); Guinness (2021) for derivatives. With g the row of G of a point (see
//           vecchia.hpp) over its set S, b = R_J^-1 y_J padded with 0 and e = g'y_S,
//             log p(y_i | y_J) = -e^2/2 + log g_i - log(2 pi)/2,
//             its derivative     = g' dR (e b + (e^2 - 1)/2 g),
//           because R_S^-1 = pad(R_J^-1) + g g'. Outer products of these scores add up to the
//           information matrix (they are martingale differences).
//   Cost:   N (m^2 kernel values with derivatives + m^3/3 flops); O(N m) memory for neighbours.
//   When not: lengthscales as long as the data and little noise: the errors of conditioning on m
//           points add up.
#pragma once

#include "mercer/approximations/vecchia.hpp"

namespace mercer::approximations {

/// What varies between evaluations. The mean is basis * beta with beta by generalised least
/// squares under the same approximation.
struct VecchiaModel {
  const kernels::Kernel& kernel;
  ConstVectorView noise;        // variance of each point
  ConstVectorView noise_slope;  // its derivative in the log of the noise parameter
  ConstVectorView y;
  ConstMatrixView basis;  // N x q; no columns for a zero mean
};

struct VecchiaEvidence {
  double value = 0;
  Vector gradient;     // in the kernel's log parameters, then the log of the noise parameter
  Matrix information;  // the sum over points of the outer product of their scores
  Index raised = 0;    // small matrices that were not positive definite to rounding
};

class VecchiaLikelihood {
 public:
  /// Order and neighbours are found once, with this kernel and noise, and kept: the value is a
  /// smooth function of the hyperparameters. x has one row per point.
  VecchiaLikelihood(const kernels::Kernel& kernel, const linalg::Diagonal& noise, ConstMatrixView x,
                    const VecchiaOptions& options = {});

  Index size() const { return x_.rows(); }
  Index neighbours() const { return neighbours_.most; }
  VecchiaEvidence evaluate(const VecchiaModel& model, bool with_gradient = true) const;

  static double bytes(Index n, Index d, Index neighbours);

 private:
  std::vector<Index> order_;
  Matrix x_;  // in that order
  Neighbours neighbours_;
};

/// tr(G'G dH_p) for every log parameter of the kernel, then for the log of the noise parameter
/// (`noise_slope` is the derivative of each point's noise in it). Exact. x is in the order of the
/// points that G was made for.
///   Cost: N m^2 derivatives of kernel values.
Vector inverse_trace(const Vecchia& factor, const kernels::Kernel& kernel, ConstMatrixView x,
                     ConstVectorView noise_slope);

}  // namespace mercer::approximations
