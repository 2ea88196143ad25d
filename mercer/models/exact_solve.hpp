// The systems of exact inference: H = K + D solved for the target and for the columns of a trend.
#pragma once

#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/progress.hpp"

namespace mercer::models {

struct SolvedSystem {
  inference::SystemReport report;  // of y
  Matrix solution;                 // H^-1 [y, basis]
  linalg::Diagonal noise;          // of H, jitter included
  double jitter = 0, build_seconds = 0;
  preconditioners::BuildReport preconditioner;
};

/// Throws Interrupted. `basis`: the columns of the trend, or none.
SolvedSystem solve_system(const inference::Problem& problem, const inference::Observations& data,
                          ConstMatrixView basis, const inference::SystemChoice& choice,
                          const ProgressCallback& progress);

}  // namespace mercer::models
