// mercer fit for classes, counts and outliers: Laplace's approximation with any likelihood.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/fit_command.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/learning_text.hpp"
#include "cli/trace.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/split.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

struct LatentRun {
  data::Dataset data;
  models::LatentFitResult result;
  std::optional<Json> held_out;
  std::string held_out_text;
  bool converged = false;
  bool written = false;
  double seconds = 0;
};

void score(const data::Dataset& test, const FitCommand& command, const Console& console,
           LatentRun& run) {
  models::PredictOptions options;
  options.memory = command.fit.method.memory;
  options.variance.rows = test.size();
  const models::LatentPredictor predictor(run.result.model, options);
  const auto predictions = predictor.predict(test.inputs, console.progress());
  LatentScores scores(predictor.model());
  scores.add(predictor, predictions, test.target,
             [](Index row) { return fmt::format("row {} of those held out", row + 1); });
  VarianceRecord variances;
  variances.add(predictions);
  run.held_out = scores.json();
  put_variances(*run.held_out, variances);
  run.held_out_text = fmt::format("Held out     {}\n{}{}", plural(test.size(), "row"),
                                  scores.text(), variances_text(variances));
}

LatentRun execute(const FitCommand& command, data::Dataset data, const Console& console) {
  LatentRun run;
  // Classes are those of the whole file, whatever part is learned from.
  const auto classes = command.classifies() ? models::find_classes(data) : models::Classes();
  const auto test = hold_out(command, data);
  run.data = std::move(data);
  std::optional<LatentTrace> trace;
  if (!command.trace.empty())
    trace.emplace(command.trace, command.validation, run.data.schema, classes);
  run.result = latent_factorisations([&] {
    return models::fit_latent(run.data, latent_options(command), classes,
                              stop_learning_first(console), trace ? &trace->validation() : nullptr);
  });
  run.converged = run.result.stop == StopReason::converged;
  if (test) score(*test, command, console, run);
  clear_progress_line();
  if (run.converged || command.keep_unconverged) {
    run.result.model.save(command.model_path);
    run.written = true;
  }
  run.seconds = command.timer.seconds();
  return run;
}

Json steps_json(const models::LatentFitResult& result) {
  if (!result.plan.trains || result.plan.train_method == "exact") return nullptr;
  return {{"steps", gradient_steps_json(result.training.history)},
          {"resumed", result.training.resumed_gradients},
          {"loose", result.training.loose_gradients},
          {"matvecs", result.training.matvecs}};
}

Json fit_json(const FitCommand& command, const LatentRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  Json json = {{"n", run.data.size()}, {"d", run.data.dimension()}};
  json["task"] = command.task;
  json["method"] = model.map_only ? "klr" : "gp";
  json["likelihood"] = model.problem.likelihood->text();
  put_classes(json, model);
  json["kernel"] = model.problem.kernel.text();
  json["plan"] = plan_json(result.plan);
  json["hyperparameters"] = latent_hyperparameters_json(model);
  json["log_marginal_likelihood"] =
      likelihood_json(result.likelihood, model.problem.parameter_names(), !command.data.raw_scale);
  json["certificate"] = latent_certificate_json(model);
  put_method(json, result.plan, result.preconditioner);
  json["newton_steps"] = result.newton_steps;
  json["step_halvings"] = result.halvings;
  json["iterations"] = result.iterations;
  json["stop"] = std::string(to_string(result.stop));
  put_training(json, result.plan, result.training);
  json["gradients"] = steps_json(result);
  json["matvecs"] = result.training.matvecs + result.matvecs;
  Json seconds;
  put(seconds, "total", run.seconds);
  put(seconds, "train", result.training.seconds);
  put(seconds, "solve", result.solve_seconds);
  json["seconds"] = std::move(seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(run.data, command.data.path);
  json["warnings"] = result.warnings;
  if (run.held_out) json["evaluation"] = *run.held_out;
  json["model"] = run.written ? Json(command.model_path) : Json(nullptr);
  return json;
}

std::string training_text(const models::LatentFitResult& result) {
  if (!result.plan.trains) return "Training     none: the hyperparameters are those given\n";
  const auto& training = result.training;
  const bool exact = result.plan.train_method == "exact";
  std::string text = "Training     ";
  if (training.evaluations > 0)
    text += fmt::format("{} of the exact Laplace evidence on up to {} rows{}\n",
                        plural(training.evaluations, "evaluation"),
                        count(exact ? result.plan.train_rows : result.plan.start_rows),
                        exact ? fmt::format(": {}", to_string(training.stop)) : "");
  if (!exact)
    text +=
        fmt::format("{}{} on {} rows: {}: {}\n", training.evaluations > 0 ? "             " : "",
                    result.plan.train_method, count(result.plan.train_rows),
                    gradients_text(training, "gradient", " by solves"), to_string(training.stop));
  return text + gain_text(training, "log evidence") + bounds_text(training);
}

std::string fit_text(const FitCommand& command, const LatentRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  std::string text = fmt::format("Data         {}: {}, {}, target {}\n", command.data.path,
                                 plural(run.data.size(), "row"),
                                 plural(run.data.dimension(), "input"), model.schema.target);
  for (const auto& message : run.data.messages) text += fmt::format("             {}\n", message);
  text += fmt::format("Likelihood   {}\n", wrapped(latent_target_text(model), 13));
  text += fmt::format("Model        {}\n", latent_model_text(model));
  text += fmt::format("Plan         {}\n", wrapped(result.plan.reason, 13));
  text += training_text(result);
  text += latent_hyperparameters_text(model);
  if (result.likelihood.known)
    text += fmt::format(
        "Evidence     {}{} (log, Laplace's approximation)\n", number(result.likelihood.value, 7),
        result.likelihood.method == "lanczos"
            ? fmt::format(", 95 % interval {} to {}", number(result.likelihood.low, 7),
                          number(result.likelihood.high, 7))
            : "");
  text +=
      fmt::format("Mode         {} of Newton's method{}: {}\n", plural(result.newton_steps, "step"),
                  result.iterations > 0
                      ? fmt::format(", {} of the solves", plural(result.iterations, "iteration"))
                      : "",
                  to_string(result.stop));
  text += latent_certificate_text(model);
  text += fmt::format("Time         {} (training {}, solve {}); peak memory {}\n",
                      duration(run.seconds), duration(result.training.seconds),
                      duration(result.solve_seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  text += run.held_out_text;
  if (run.written)
    text += fmt::format("Written      {0}\n\nNext: mercer predict {0} NEW.csv -o predictions.csv\n",
                        command.model_path);
  return text;
}

}  // namespace

int run_fit_latent(const FitCommand& command, const Arguments& arguments, data::Dataset data,
                   const Console& console) {
  const LatentRun run = execute(command, std::move(data), console);
  for (const auto& warning : run.result.warnings) console.warn(warning);
  tell_learning(arguments, run.result.plan, run.result.training, console);
  if (!run.converged)
    console.warn(fmt::format(
        "the mode was not found to tolerance {} ({}): latent means may be off by {}; {}",
        number(command.fit.method.tolerance, 3), to_string(run.result.stop),
        number(run.result.model.certificate.mean_error_bound, 3),
        run.written ? "the model was written all the same, as --keep-unconverged says"
                    : "no model was written. Allow more --max-iterations, give a larger "
                      "--tolerance, or keep it with --keep-unconverged"));
  if (command.run.json)
    print_json(fit_json(command, run));
  else
    print_out(fit_text(command, run));
  if (run.result.interrupted()) return exit_interrupted;
  return run.converged ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
