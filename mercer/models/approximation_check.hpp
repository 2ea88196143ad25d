// How far an approximation is from the exact posterior: measured, not bounded.
//   Cost: the exact posterior at the same hyperparameters (one system of all rows, by the solver
//         that the plan takes for it), and one solve for each row that is checked.
//   When not: where the exact posterior takes longer than the answer is worth; fewer rows save
//         little, because the solve of the weights is one of all rows.
#pragma once

#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// The distance of predictions from those of the exact posterior at the same rows, both with
/// variances. `noise` is the variance of Gaussian noise in target units; 0 with another likelihood.
ApproximationCheck distance_from_exact(const Predictions& exact, const Predictions& approximate,
                                       double noise);

/// Gaussian noise of a model as a variance in target units; 0 with another likelihood.
double noise_in_target_units(const KernelMachine& model);

struct MeasuredApproximation {
  ApproximationCheck check;
  std::vector<std::string> warnings;
};

/// At `rows` random rows of the data, all when there are fewer; `options` are those of the fit.
/// Throws Interrupted, DoesNotFit.
MeasuredApproximation measure_approximation(const KernelMachine& model, const data::Dataset& data,
                                            const FitOptions& options, Index rows,
                                            const ProgressCallback& progress = {});

}  // namespace mercer::models
MERCER_API_END
