// What the words after `mercer fit` ask for, and after `mercer plan`, which says what fit would do.
#pragma once

#include <optional>
#include <string>

#include "cli/console.hpp"
#include "cli/shared_options.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::cli {

struct FitCommand {
  RunOptions run;
  DataFlags data;
  models::FitOptions fit;
  std::string model_path;
  std::string task = "auto";
  std::string method = "auto";
  std::string likelihood = "auto";
  std::optional<double> test_fraction;
  bool keep_unconverged = false;
  std::string trace, validation;
  bool no_merge = false;
  Timer timer;  // of the whole run

  bool classifies() const { return task == "classification"; }
};

/// --likelihood.
void add_likelihood_option(Arguments& arguments, std::string& likelihood);
/// Throws InvalidArgument when the options of model and learning are not what they may be, or have
/// no part in what was asked for.
void check_learning(const FitCommand& command, const Arguments& arguments);

/// Sets task and likelihood as far as the options say them, and with that how the target is read,
/// before any data are; refuses what does not go together.
void settle_task(FitCommand& command, const Arguments& arguments);

/// Settles what the options leave open from the data, says what it found by itself, and completes
/// the options of models::fit: likelihood, classes, scaling, merging.
void settle_likelihood(FitCommand& command, const Arguments& arguments, const data::Dataset& data,
                       const Console& console);

}  // namespace mercer::cli
