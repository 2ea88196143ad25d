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
  bool row_numbers = false;
  std::vector<std::string> id;
  data::DataOptions data;  // drop_missing

  /// Rows that are left out can be told by the numbers of the others.
  bool numbers_rows() const { return row_numbers || data.drop_missing; }
};

template <class Visitor>
void visit_fields(PredictCommand& o, Visitor&& field) {
  field(
      {"output", "FILE", "CSV to write; - is standard output; .gz packs it", "", Affects::nothing},
      o.output, Any{});
  field({"no_variance", "",
         "`variance=none`: only mean, error_bound and error_estimate, which is quick", "",
         Affects::nothing},
        o.no_variance, Any{});
  field({"id", "A,B", "columns of DATA to copy in front, as they stand there",
         "the id column of the model, if DATA has it", Affects::nothing},
        o.id, Any{});
  field({"with_inputs", "", "copy all columns of DATA in front, as they stand there", "",
         Affects::nothing},
        o.with_inputs, Any{});
  field({"row_numbers", "",
         "a column row in front: the number of the row in DATA, from 1; always with "
         "`drop_missing`",
         "", Affects::nothing},
        o.row_numbers, Any{});
  field({"seed", "S", "seed of draws and checks", "that of the model"}, o.seed, Any{});
}

}  // namespace mercer::cli
