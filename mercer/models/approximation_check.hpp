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

/// Predictions with variances, and the variances of the Gaussian noise of their rows in target
/// units (noise_in_target_units).
struct NoisyPredictions {
  Predictions of_f;
  Vector noise;
};

/// The distance of predictions from those of the exact posterior at the same rows.
ApproximationCheck distance_from_exact(const NoisyPredictions& exact,
                                       const NoisyPredictions& approximate);

/// Gaussian noise of so many rows under a model, as variances in target units; 0 with another
/// likelihood. `columns` is what is known of the rows.
Vector noise_in_target_units(const KernelMachine& model, const data::NoiseColumns& columns,
                             Index rows);

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
