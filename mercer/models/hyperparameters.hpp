// Hyperparameters as the user's data know them: a model works on scaled inputs and target, and is
// reported in both units.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/data/scaling.hpp"
#include "mercer/inference/problem.hpp"

MERCER_API_BEGIN
namespace mercer::models {

struct LeafValues {
  std::string kernel;                // "matern52"
  std::vector<Index> inputs;         // encoded inputs that the leaf sees
  std::vector<double> lengthscales;  // one for each of them; empty when the leaf has none
  std::vector<Index> shared;         // which lengthscale each of them has: equal where they share
  std::vector<double> periods;       // of `periodic`, one for each of them
};

struct Hyperparameters {
  double signal_variance = 0;            // summed over the terms of the kernel
  std::optional<double> noise_variance;  // Gaussian noise only
  std::vector<LeafValues> leaves;

  /// Those of the first leaf that has any.
  std::vector<double> lengthscales() const;
};

/// On the scale the model works on.
Hyperparameters standardised(const inference::Problem& problem);
/// In the units of the data: variances times the squared scale of the target, lengthscales times
/// the scale of their input (but `periodic` has lengthscales without a unit, and a period with).
Hyperparameters original(const inference::Problem& problem, const data::Scaling& scaling);

}  // namespace mercer::models
MERCER_API_END
