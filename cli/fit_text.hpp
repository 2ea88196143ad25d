// What a fit did, in words and as JSON.
#pragma once

#include <optional>
#include <string>

#include "cli/fit_command.hpp"
#include "cli/record.hpp"
#include "cli/streaming.hpp"
#include "cli/variances.hpp"

namespace mercer::cli {

/// Scores on the rows that were set aside.
struct HeldOut {
  models::Scores scores;
  VarianceRecord variances;
};

struct FitRun {
  FitInput input;  // what was learned from
  models::FitResult result;
  std::optional<HeldOut> held_out;
  bool interrupted = false;  // Ctrl-C was pressed, and what follows from it was said
  bool converged = false;
  std::string model_path;  // where the model was written; empty: nowhere
  bool misplaced = false;  // not where it was to be written
  double seconds = 0;

  const data::Dataset& data() const { return input.table(); }
};

Json fit_json(const FitCommand& command, const Arguments& arguments, const FitRun& run);
std::string fit_text(const FitCommand& command, const FitRun& run);
/// Notes and warnings once the model is there.
void tell_outcome(const FitCommand& command, const Arguments& arguments, const FitRun& run,
                  const Console& console);

}  // namespace mercer::cli
