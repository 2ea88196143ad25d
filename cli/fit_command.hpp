// What the words after `mercer fit` ask for; regression and the other likelihoods read the same,
// and `mercer plan`, which says what fit would do.
#pragma once

#include <optional>
#include <string>

#include "cli/console.hpp"
#include "cli/shared_options.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/latent.hpp"

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

/// Takes the rows of --test-fraction out of the data; none when it is not given.
std::optional<data::Dataset> hold_out(const FitCommand& command, data::Dataset& data);

/// The first Ctrl-C while learning by solves ends the learning, not the run: the model of what was
/// learned until then is still made.
models::ProgressCallback stop_learning_first(const Console& console);

/// Sets task and likelihood as far as the options say them, and with that how the target is read,
/// before any data are; refuses what does not go together.
void settle_task(FitCommand& command, const Arguments& arguments);

/// True when the options or the data ask for something else than numbers with Gaussian noise;
/// settles task and likelihood, and says what it found by itself.
bool is_latent(FitCommand& command, const Arguments& arguments, const data::Dataset& data,
               const Console& console);

/// What models::fit_latent is asked for, once the task is settled.
models::LatentFitOptions latent_options(const FitCommand& command);

/// The rest of `fit` for classes, counts and outliers.
int run_fit_latent(const FitCommand& command, const Arguments& arguments, data::Dataset data,
                   const Console& console);

}  // namespace mercer::cli
