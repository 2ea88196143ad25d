// What the words after `mercer fit` ask for, and after `mercer plan`, which says what fit would do.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/shared_options.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::cli {

/// auto, gp, krr, klr, and the approximations of the inference registry.
std::vector<std::string> method_names();

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
  Timer timer;  // of the whole run

  bool classifies() const { return task == "classification"; }
};

template <class Visitor>
void visit_fields(FitCommand& o, Visitor&& field) {
  field({"model", "FILE", "model file to write", "the name of DATA with .mcr, in this folder",
         Affects::nothing},
        o.model_path, Any{});
  field({"keep_unconverged", "", "write the model even if the tolerance was not reached"},
        o.keep_unconverged, Any{});
  field({"test_fraction", "F",
         "set this random share of the rows aside, learn from the rest, and score the model on "
         "them",
         "none"},
        o.test_fraction, BelowOne{});
  field({"validation", "FILE", "CSV file with the target, to score every step of learning on",
         "none", Affects::nothing},
        o.validation, Any{});
  field({"trace", "FILE",
         "CSV file for these scores: step, seconds of learning, rmse, nll and others; variances "
         "from 100 neighbours",
         "none", Affects::nothing},
        o.trace, Any{});
  field({"task", "NAME",
         "what is learned; with auto, text and two different integers (0/1, 1/2) are classes"},
        o.task, OneOf{{"auto", "regression", "classification"}});
  field(
      {"method", "NAME",
       "Gaussian process (auto, gp); kernel ridge or kernel logistic regression, its mean or mode "
       "without an uncertainty (krr, klr); or an approximation of the process, by name"},
      o.method, OneOf{method_names()});
  field({"likelihood", "NAME",
         "how the target follows from the function; auto decides from the data"},
        o.likelihood, BeginsWith{likelihood_names(true)});
}

/// Throws InvalidArgument when an option of model or learning is out of range, or has no effect on
/// what was asked for. Settles the approximation that --method names.
void check_learning(FitCommand& command, const Arguments& arguments);

/// Sets task and likelihood as far as the options say them, and with that how the target is read,
/// before any data are; refuses what does not go together.
void settle_task(FitCommand& command, const Arguments& arguments);

/// Settles what the options leave open from the data, says what it found by itself, and completes
/// the options of models::fit: likelihood, classes, scaling, merging.
void settle_likelihood(FitCommand& command, const Arguments& arguments, const data::Dataset& data,
                       const Console& console);

}  // namespace mercer::cli
