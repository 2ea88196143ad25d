// A model and its scores in words: shared by fit, info, evaluate and demo.
#pragma once

#include <string>

#include "mercer/models/hyperparameters.hpp"
#include "mercer/models/regression.hpp"
#include "mercer/models/scores.hpp"

namespace mercer::cli {

/// A table of lengthscales, shortest first when there are many.
std::string leaf_text(const models::LeafValues& leaf, const std::vector<std::string>& names);
/// Signal, noise and lengthscales in the units of the data, with the names of the inputs.
std::string hyperparameters_text(const models::RegressionModel& model);
/// Names of the inputs that a linear trend does without, because others say the same.
std::vector<std::string> trend_left_out(const models::RegressionModel& model);
std::string certificate_text(const models::RegressionModel& model);
std::string scores_text(const models::RegressionScores& scores);
/// Such a model is predicted without variances unless they are asked for.
void leave_variances(const models::RegressionModel& model, models::VarianceOptions& options);

}  // namespace mercer::cli
