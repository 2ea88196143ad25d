// H = K + D solved for the target and for the columns of a trend, until predictions made from it
// are certified to the accuracy that is asked for.
//   A residual norm alone says little: the bound of the mean is sqrt(k**) |D^-1/2 r|, so that at a
//   noise of 1e-6 a relative residual of 1e-6 leaves it at 0.1. The solve of y therefore goes on
//   below its tolerance, to the residual for which the bound is `accuracy` times the standard
//   deviation of y. A further digit takes about a sixth more iterations.
//   When not: where rounding of the residual or the limit of iterations end it earlier;
//   SolvedSystem::missed says which.
#pragma once

#include <optional>
#include <string>

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

struct SolvedSystem {
  SystemReport report;     // of y; `converged` is about the tolerance
  Matrix solution;         // H^-1 [y, basis]
  linalg::Diagonal noise;  // of H, jitter included
  double jitter = 0, build_seconds = 0;
  std::optional<double> log_det;  // of H with its jitter, where it was factored
  preconditioners::BuildReport preconditioner;
  /// About what is missing of H^-1 y, H without jitter, and a bound of sqrt(r'H^-1 r) of its
  /// residual r.
  Vector missing;
  double energy = 0;
  /// Where H was factored: L^-1 R with R = [y, basis] - H solution and H without jitter, and a
  /// number f >= 1 with H^-1 <= f^2 (L L')^-1: jitter and rounding of the factor.
  Matrix whitened_residual;
  double whitening_error = 1;
  /// Why the accuracy was not reached; empty when it was, or was not asked for.
  std::string missed;
};

/// Throws Interrupted. `basis`: the columns of the trend, or none. `accuracy`: the bound of the
/// mean, as a share of the standard deviation of y; zero: the tolerance of `choice` is enough.
/// `start`: about H^-1 [y, basis], where iterations begin; empty: zero.
SolvedSystem solve_system(const Problem& problem, const Observations& data, ConstMatrixView basis,
                          const SystemChoice& choice, double accuracy,
                          const ProgressCallback& progress, const Matrix& start = {});

/// The standard deviation of the target over the rows.
double target_sd(const Observations& data);

}  // namespace mercer::inference
