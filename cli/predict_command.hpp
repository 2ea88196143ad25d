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
  bool with_inputs = false;
  data::DataOptions data;  // drop_missing
};

template <class Visitor>
void visit_fields(PredictCommand& o, Visitor&& field) {
  field(
      {"output", "FILE", "CSV to write; - is standard output; .gz packs it", "", Affects::nothing},
      o.output, Any{});
  field({"no_variance", "", "`variance=none`: only mean and error_bound, which is quick", "",
         Affects::nothing},
        o.no_variance, Any{});
  field({"with_inputs", "", "copy the model's input columns in front", "", Affects::nothing},
        o.with_inputs, Any{});
  field({"seed", "S", "seed of draws and checks", "that of the model"}, o.seed, Any{});
}

}  // namespace mercer::cli
