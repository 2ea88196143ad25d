// A model and its scores in words: shared by fit, info, evaluate and demo.
#pragma once

#include <string>

#include "mercer/models/regression.hpp"
#include "mercer/models/scores.hpp"

namespace mercer::cli {

/// Signal, noise and lengthscales in the units of the data, with the names of the inputs.
std::string hyperparameters_text(const models::RegressionModel& model);
/// Names of the inputs that a linear trend does without, because others say the same.
std::vector<std::string> trend_left_out(const models::RegressionModel& model);
std::string certificate_text(const models::RegressionModel& model);
std::string scores_text(const models::RegressionScores& scores);

/// Loads a model; a file that cannot be opened is exit code 6 like one that cannot be read.
models::RegressionModel load_model(const std::string& path);

}  // namespace mercer::cli
