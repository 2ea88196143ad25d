// The systems of exact inference: H = K + D solved for the target and for the columns of a trend.
#pragma once

#include <optional>

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

struct SolvedSystem {
  SystemReport report;     // of y
  Matrix solution;         // H^-1 [y, basis]
  linalg::Diagonal noise;  // of H, jitter included
  double jitter = 0, build_seconds = 0;
  std::optional<double> log_det;  // of H with its jitter, where it was factored
  preconditioners::BuildReport preconditioner;
};

/// Throws Interrupted. `basis`: the columns of the trend, or none.
SolvedSystem solve_system(const Problem& problem, const Observations& data, ConstMatrixView basis,
                          const SystemChoice& choice, const ProgressCallback& progress);

/// The posterior with Gaussian noise by the system that was chosen, factored or iterative.
Posterior gaussian_posterior(const Problem& problem, const Observations& rows,
                             const SystemChoice& system, std::uint64_t seed,
                             const PosteriorRequest& request, const ProgressCallback& progress);

}  // namespace mercer::inference
