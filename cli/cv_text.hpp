// What a cross-validation found, in words, as JSON, and row by row.
#pragma once

#include <string>

#include "cli/fit_command.hpp"
#include "cli/record.hpp"
#include "mercer/studies/cross_validation.hpp"

namespace mercer::cli {

struct CvCommand {
  FitCommand fit;
  studies::CvOptions options;  // its fit is the one above, once that is settled
  std::string fold_column, output;
};

template <class Visitor>
void visit_fields(CvCommand& o, Visitor&& field) {
  visit_fields(o.options, field);
  field({"fold_column", "NAME",
         "column with the fold of each row, any values, instead of random folds. Not an input",
         "none"},
        o.fold_column, Any{});
  field({"output", "FILE",
         "write the prediction of every row from the other folds: row, fold, target, mean, "
         "sd_latent, sd_obs, q05, q95, or label and probabilities",
         "not written", Affects::nothing},
        o.output, Any{});
}

Json cv_json(const CvCommand& command, const Arguments& arguments, const data::Dataset& data,
             const studies::CvResult& result);
std::string cv_text(const CvCommand& command, const data::Dataset& data,
                    const studies::CvResult& result);
/// The rows that were predicted, in the order of the file.
void write_predictions(const CvCommand& command, const data::Dataset& data,
                       const studies::CvResult& result);

}  // namespace mercer::cli
