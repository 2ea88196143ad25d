// What the words after `mercer predict` ask for.
#pragma once

#include "cli/console.hpp"
#include "cli/shared_options.hpp"
#include "mercer/models/predictor.hpp"

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

}  // namespace mercer::cli
