#include "cli/fit_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/approximation.hpp"
#include "cli/format.hpp"
#include "cli/learning_text.hpp"
#include "cli/model_text.hpp"
#include "cli/score_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/text.hpp"
#include "mercer/training/training.hpp"

namespace mercer::cli {
namespace {

/// The exact gradients that learning by solves took, null when it was by Cholesky.
Json gradients_json(const models::FitResult& result) {
  if (!result.plan.trains || !result.plan.train_by_solves) return nullptr;
  const auto names = result.model.problem.parameter_names();
  Json last = Json::object();
  const auto& training = result.training;
  for (Index i = 0; i < training.gradient.size(); ++i) {
    Json entry;
    put(entry, "value", training.gradient[i]);
    if (training.standard_error.size() > 0)
      put(entry, "standard_error", training.standard_error[i]);
    last[names[static_cast<std::size_t>(i)]] = std::move(entry);
  }
  return {{"steps", gradient_steps_json(result.training.history)},
          {"resumed", training.resumed_gradients},
          {"last", std::move(last)},
          {"loose", training.loose_gradients},
          {"failed", training.failed_gradients},
          {"surrogate_evaluations", training.surrogate_evaluations},
          {"raised_conditionals", training.raised_conditionals},
          {"last_rows", training.gradient_rows},
          {"budget_spent", training.budget_spent},
          {"products", training.products},
          {"matvecs", training.matvecs}};
}

// Rows that were read in passes.
void put_stream(Json& json, const models::FitResult& result) {
  json["streamed"] = result.plan.streamed;
  if (!result.plan.streamed) return;
  const auto& training = result.training;
  json["passes"] = result.passes;
  json["reservoir_rows"] = result.plan.reservoir;
  if (result.rows_per_second > 0)
    put(json, "rows_per_second", result.rows_per_second);
  else
    json["rows_per_second"] = nullptr;
  if (!result.plan.trains) return;
  json["full_evaluations"] = training.full_evaluations;
  json["full_gradients"] = training.full_gradients;
  json["resumed_full_values"] = training.resumed_full_values;
  json["full_stop"] = std::string(to_string(training.full_stop));
  json["full_steps"] = Json::array();
  for (const auto& step : training.full_steps) {
    Json row;
    put(row, "log_likelihood", step.log_likelihood);
    put(row, "gradient_norm", step.gradient_norm);
    put(row, "predicted_gain", step.predicted_gain);
    json["full_steps"].push_back(std::move(row));
  }
}

// Learning on the sample was done then.
bool stopped_in_a_pass(const models::FitResult& result) {
  return result.plan.streamed && result.training.full_evaluations > 0 &&
         result.training.full_stop == StopReason::interrupted;
}

// "Passes       4 over 10,000,000 rows (250,000 rows a second); 100,000 random ones in memory".
std::string stream_text(const models::FitResult& result) {
  if (!result.plan.streamed) return "";
  const auto& training = result.training;
  std::string text =
      fmt::format("Passes       {} over {} rows", result.passes, count(result.plan.n));
  if (result.rows_per_second > 0)
    text += fmt::format(" ({} rows a second)",
                        count(static_cast<Index>(std::round(result.rows_per_second))));
  text += fmt::format("; {} of them in memory\n", count(result.plan.reservoir));
  if (stopped_in_a_pass(result) && training.full_steps.empty())
    return text + "             interrupted before a step on the evidence of all rows\n";
  if (training.full_steps.empty()) return text;
  const bool converged = training.full_stop == StopReason::converged;
  text += fmt::format(
      "             {} and {} of the evidence of all rows: {};\n"
      "             the {} expected to gain {}\n",
      plural(training.full_evaluations, "value"), plural(training.full_gradients, "gradient"),
      as_words(to_string(training.full_stop)), converged ? "next step is" : "last step was",
      number(training.full_steps.back().predicted_gain, 3));
  return text;
}

// What the objective of learning is called: with Gaussian noise it is the likelihood itself.
struct FitWords {
  const char* exact;  // of an evaluation by Cholesky
  const char* rows;   // on how many
  const char* gradient;
  const char* after_gradient;
  const char* gain;
};

FitWords words_for(bool gaussian) {
  return gaussian ? FitWords{"exact likelihood", "on", "exact gradient", "", "log likelihood"}
                  : FitWords{"exact Laplace evidence", "on up to", "gradient", " by solves",
                             "log evidence"};
}

// Learning by the evidence of an approximation: exact ones on few rows, then its own.
std::string approximate_training_text(const models::FitResult& result) {
  const auto& training = result.training;
  const auto& plan = result.plan;
  const auto words = words_for(result.model.problem.gaussian());
  std::string text;
  if (training.evaluations > 0)
    text += fmt::format("{} of the {} on {} rows\n             ",
                        plural(training.evaluations, "evaluation"), words.exact,
                        count(plan.start_rows));
  const auto kind = evidence_kind(plan.inference, result.model.problem.gaussian()) == "bound"
                        ? "bound"
                        : "evidence";
  if (training.from_start_values)
    text += fmt::format(
        "begun at the start values again, which led to a larger {} of {}\n             ", kind,
        plan.inference);
  if (training.level_evaluations > 0)
    text += fmt::format("{} of the {} of {} on fewer rows\n             ",
                        plural(training.level_evaluations, "evaluation"), kind, plan.inference);
  text += fmt::format(
      "{} of the {} of {} on {} rows",
      plural(training.approximate_evaluations - training.level_evaluations, "evaluation"), kind,
      plan.inference, count(plan.train_rows));
  if (training.base_evaluations > 0)
    text += fmt::format(",\n             {} with {} moving",
                        plural(training.base_evaluations, "evaluation"),
                        plural(training.base_points, "base point"));
  if (!stopped_in_a_pass(result)) text += fmt::format(": {}", as_words(to_string(training.stop)));
  return text + "\n" + bounds_text(training);
}

std::string training_text(const models::FitResult& result) {
  if (!result.plan.trains) return "Training     none: the hyperparameters are those given\n";
  const auto& training = result.training;
  const auto& plan = result.plan;
  const auto words = words_for(result.model.problem.gaussian());
  const bool by_solves = plan.train_by_solves;
  std::string text = "Training     ";
  if (plan.approximate) return text + approximate_training_text(result);
  if (training.evaluations > 0)
    text +=
        fmt::format("{} of the {} {} {} rows{}\n", plural(training.evaluations, "evaluation"),
                    words.exact, words.rows, count(by_solves ? plan.start_rows : plan.train_rows),
                    by_solves ? "" : fmt::format(": {}", as_words(to_string(training.stop))));
  if (training.evaluations == 0 && !by_solves)
    text +=
        fmt::format("{} on {} rows\n", as_words(to_string(training.stop)), count(plan.train_rows));
  if (by_solves) {
    text += fmt::format("{}{} on {} rows: ", training.evaluations > 0 ? "             " : "",
                        plan.train_method, count(plan.train_rows));
    if (training::trainers().find(plan.train_method).takes_gradients())
      text += gradients_text(training, words.gradient, words.after_gradient);
    if (training.gradients() > 0 && training.surrogate_evaluations > 0) text += ", ";
    if (training.surrogate_evaluations > 0)
      text += plural(training.surrogate_evaluations, "evaluation") + " of the Vecchia likelihood";
    text += fmt::format(": {}\n", as_words(to_string(training.stop)));
  }
  return text + gain_text(training, plan.train_rows, words.gain) +
         budget_text(training, plan.train_budget) + bounds_text(training);
}

std::string evidence_text(const models::FitResult& result, bool raw_scale) {
  const auto& value = result.likelihood;
  if (!value.known) return "";
  if (result.plan.approximate) {
    const bool bound =
        evidence_kind(result.plan.inference, result.model.problem.gaussian()) == "bound";
    return fmt::format("{}   {} (log, {} {}, on {} rows, {})\n",
                       result.model.problem.gaussian() ? "Likelihood" : "Evidence  ",
                       number(value.value, 7), bound ? "a lower bound by" : "approximate: that of",
                       result.plan.inference, count(value.rows),
                       raw_scale ? "units of the data" : "standardised units");
  }
  const std::string interval =
      value.method == "lanczos"
          ? fmt::format(", 95 % interval {} to {}", number(value.low, 7), number(value.high, 7))
          : "";
  if (!result.model.problem.gaussian())
    return fmt::format("Evidence     {}{} (log, Laplace's approximation)\n", number(value.value, 7),
                       interval);
  return fmt::format("Likelihood   {}{} (log, on {} rows, {})\n", number(value.value, 7), interval,
                     count(value.rows), raw_scale ? "units of the data" : "standardised units");
}

// How the weights were found, where there is more to say than the certificate does.
std::string solve_text(const models::FitResult& result) {
  std::string text;
  if (result.solve.fell_back_to_double)
    text += "Precision    float32 products were not enough: the solve went on in double\n";
  if (!result.model.problem.gaussian())
    text += fmt::format(
        "Mode         {} of Newton's method{}: {}\n", plural(result.newton_steps, "step"),
        result.solve.iterations > 0
            ? fmt::format(", {} of the solves", plural(result.solve.iterations, "iteration"))
            : "",
        as_words(to_string(result.solve.stop)));
  if (result.newton_decrement)
    text += fmt::format(
        "             rounding keeps its residual above the tolerance; the latent means are\n"
        "             {} posterior standard deviations from the mode, to first order\n",
        number(*result.newton_decrement, 2));
  return text;
}

std::string not_converged_text(const FitRun& run) {
  const auto& result = run.result;
  const std::string stop = as_words(to_string(result.solve.stop));
  const std::string end =
      !run.model_path.empty()
          ? "the model was written all the same, as --keep-unconverged says"
          : fmt::format("no model was written. {}, or keep it with --keep-unconverged",
                        solve_advice(result.plan.system, result.model.problem.gaussian(),
                                     result.solve.stop));
  if (result.model.problem.gaussian())
    return fmt::format("the tolerance {} was not reached ({}): the relative residual is {}; {}",
                       number(result.model.method.tolerance, 3), stop,
                       number(result.model.certificate.relative_residual, 3), end);
  return fmt::format(
      "the mode was not found to tolerance {} ({}): latent means may be off by {}; {}",
      number(result.model.method.tolerance, 3), stop,
      number(result.model.certificate.mean_error_bound, 3), end);
}

}  // namespace

Json fit_json(const FitCommand& command, const Arguments& arguments, const FitRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  Json json = {{"n", run.input.rows()}, {"d", run.data().dimension()}};
  json["merged_rows"] = result.merged_rows;
  put_model(json, model);
  json["plan"] = plan_json(result.plan);
  json["hyperparameters"] = hyperparameters_json(model.problem, model.scaling);
  json["log_marginal_likelihood"] =
      likelihood_json(result.likelihood, model.problem.parameter_names(), command.fit.standardize);
  json["log_marginal_likelihood"]["kind"] =
      evidence_kind(result.plan.inference, model.problem.gaussian());
  json["certificate"] = certificate_json(model);
  put_method(json, result.plan, result.preconditioner);
  json["newton_steps"] = result.newton_steps;
  if (result.newton_decrement) put(json, "newton_decrement", *result.newton_decrement);
  json["step_halvings"] = result.halvings;
  json["iterations"] = result.solve.iterations;
  json["inner_iterations"] = result.solve.inner_iterations;
  json["stop"] = std::string(to_string(result.solve.stop));
  json["fell_back_to_double"] = result.solve.fell_back_to_double;
  put(json, "jitter", result.jitter);
  put_training(json, result.plan, result.training);
  if (result.plan.approximate) {
    json["rank"] = model.sparse->base.rows();
    json["approximate_evaluations"] = result.training.approximate_evaluations;
    json["level_evaluations"] = result.training.level_evaluations;
    json["base_evaluations"] = result.training.base_evaluations;
    json["from_start_values"] = result.training.from_start_values;
  }
  put_stream(json, result);
  json["gradients"] = gradients_json(result);
  json["matvecs"] = result.training.matvecs + result.solve.matvecs;
  Json seconds;
  put(seconds, "total", run.seconds);
  put(seconds, "train", result.training.seconds);
  put(seconds, "solve", result.build_seconds + result.solve.seconds);
  json["seconds"] = std::move(seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(run.data(), command.data.path);
  if (result.plan.streamed) json["data"]["duplicate_inputs"] = nullptr;  // rows are not compared
  json["warnings"] = result.warnings;
  if (run.held_out) {
    json["evaluation"] = scores_json(run.held_out->scores);
    put_variances(json["evaluation"], run.held_out->variances);
  }
  json["options"] = arguments.record();
  json["model"] = run.model_path.empty() ? Json(nullptr) : Json(run.model_path);
  return json;
}

std::string fit_text(const FitCommand& command, const FitRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  std::string text = fmt::format(
      "Data         {}: {}, {}, target {}\n", command.data.path, plural(run.input.rows(), "row"),
      plural(run.data().dimension(), "input"), data::printable(model.schema.target));
  for (const auto& message : run.data().messages) text += fmt::format("             {}\n", message);
  if (result.merged_rows > 0)
    text += fmt::format("Merged       {} with the same inputs as an earlier row: {} are left\n",
                        plural(result.merged_rows, "row"), count(result.plan.n));
  if (!model.problem.gaussian())
    text += fmt::format("Likelihood   {}\n", wrapped(likelihood_text(model), 13));
  text += fmt::format("Model        {}\n", model_text(model));
  text += fmt::format("Plan         {}\n", wrapped(result.plan.reason, 13));
  text += training_text(result);
  text += stream_text(result);
  text += hyperparameters_text(model.problem, model.scaling, model.schema);
  text += evidence_text(result, !command.fit.standardize);
  text += solve_text(result);
  text += certificate_text(model);
  text += fmt::format("Time         {} (training {}, solve {}); peak memory {}\n",
                      duration(run.seconds), duration(result.training.seconds),
                      duration(result.build_seconds + result.solve.seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  if (run.held_out) {
    const auto& scores = run.held_out->scores;
    text += fmt::format("Held out     {}\n{}", plural(scores.n(), "row"), scores_text(scores)) +
            variances_text(run.held_out->variances);
  }
  if (!run.model_path.empty())
    text += fmt::format("Written      {0}\n\nNext: mercer predict {0} NEW.csv -o predictions.csv\n",
                        run.model_path);
  return text;
}

void tell_outcome(const FitCommand& command, const Arguments& arguments, const FitRun& run,
                  const Console& console) {
  const auto& result = run.result;
  for (const auto& warning : result.warnings) console.warn(warning);
  tell_learning(arguments, result.plan, result.training, console);
  if (result.merged_rows > 0)
    console.note(fmt::format(
        "merged {} with an earlier one of the same inputs, which is exact (--no-merge keeps them "
        "apart)",
        plural(result.merged_rows, "row")));
  else if (result.model.problem.gaussian() && run.data().duplicate_inputs > 0 && command.fit.merge)
    console.note("rows with the same inputs are not merged where noise variances are given");
  const auto& model = result.model;
  if (const auto text = unequal_scales(model.problem, model.scaling, model.schema); !text.empty())
    console.note(text);
  if (const auto names = trend_left_out(result.model); !names.empty())
    console.note(fmt::format(
        "the linear trend does without {}: on these rows the constant and the other inputs say the "
        "same (the kernel still uses {})",
        data::shown_list(names), names.size() == 1 ? "it" : "them"));
  if (!run.converged) console.warn(not_converged_text(run));
}

}  // namespace mercer::cli
