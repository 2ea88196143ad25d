// What the words after `mercer predict` ask for.
#pragma once

#include "cli/console.hpp"
#include "cli/shared_options.hpp"
#include "mercer/data/predict_stream.hpp"
#include "mercer/models/latent.hpp"

namespace mercer::cli {

struct PredictCommand {
  RunOptions run;
  std::string model_path;
  std::string data_path;
  std::string output = "-";
  models::PredictOptions options;
  std::optional<std::uint64_t> seed;
  bool no_variance = false;
  std::optional<Index> samples;
  bool with_inputs = false;
  bool drop_missing = false;
};

/// The rest of `predict` and of `evaluate` for a model with a likelihood that is not Gaussian.
int predict_latent(const PredictCommand& command, models::LatentModel model,
                   const Console& console);

struct EvaluateCommand {
  RunOptions run;
  std::string model_path;
  std::string data_path;
  data::PredictOptions rows{data::TargetUse::required, false};
  models::PredictOptions options;
  std::optional<std::uint64_t> seed;
};
int evaluate_latent(const EvaluateCommand& command, models::LatentModel model,
                    const Console& console);

}  // namespace mercer::cli
