// mercer fit: learns hyperparameters, solves, certifies, and writes a model file.
#include <fmt/format.h>

#include <algorithm>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/fit_command.hpp"
#include "cli/format.hpp"
#include "cli/learning_text.hpp"
#include "cli/model_text.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/suggest.hpp"
#include "cli/trace.hpp"
#include "cli/variances.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/interrupt.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/split.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

void add_fit_options(Arguments& arguments, FitCommand& command) {
  arguments.positional("DATA", command.data.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.option("-m,--model", "FILE", command.model_path,
                   "model file to write [default: the name of DATA\nwith .mcr, in this folder]");
  arguments.flag("--keep-unconverged", command.keep_unconverged,
                 "write the model even if the tolerance was not reached");
  arguments.option("--test-fraction", "F", command.test_fraction,
                   "set this random share of the rows aside, learn from the\n"
                   "rest, and score the model on them");
  add_data_options(arguments, command.data);
  add_noise_options(arguments, command.data);
  add_merge_option(arguments, command.no_merge);
  add_train_options(arguments, command.fit.train);
  arguments.option("--checkpoint", "FILE", command.fit.train.checkpoint,
                   "keep what was learned so far in this file; the same\n"
                   "command line goes on from it");
  arguments.option("--validation", "FILE", command.validation,
                   "CSV file with the target, to score every step of learning on");
  arguments.option("--trace", "FILE", command.trace,
                   "CSV file for these scores: step, seconds of learning, rmse,\n"
                   "nll and others; variances from 100 neighbours");
  arguments.group("Task");
  arguments.option("--task", "NAME", command.task,
                   "auto | regression | classification; auto: text, and integers of\n"
                   "at most ten values, are classes");
  arguments.option("--method", "NAME", command.method,
                   "auto | gp | krr | klr: Gaussian process; kernel ridge or kernel\n"
                   "logistic regression, its mean or mode without an uncertainty");
  add_likelihood_option(arguments, command.likelihood);
  add_method_options(arguments, command.fit.method);
  add_run_options(arguments, command.run);
}

void check(const FitCommand& command) {
  require_choice("--method", command.method, {"auto", "gp", "krr", "klr"});
  if (command.test_fraction && !(*command.test_fraction > 0 && *command.test_fraction < 1))
    throw InvalidArgument(
        fmt::format("--test-fraction is {}, but must lie between 0 and 1", *command.test_fraction));
  check_output_file("--model", command.model_path, {command.data.path, command.validation});
  const auto& checkpoint = command.fit.train.checkpoint;
  if (!checkpoint.empty())
    check_output_file("--checkpoint", checkpoint, {command.data.path, command.validation});
  if (command.trace.empty() != command.validation.empty())
    throw InvalidArgument("--trace and --validation belong together: give both or none");
  if (!command.trace.empty())
    check_output_file("--trace", command.trace, {command.data.path, command.validation});
  if (!command.trace.empty() &&
      (command.trace == command.model_path || command.trace == checkpoint))
    throw InvalidArgument("--trace names a file that --model or --checkpoint writes; name another");
  if (checkpoint == command.model_path)
    throw InvalidArgument("--checkpoint and --model name the same file; name two");
}

struct HeldOut {
  models::RegressionScores scores;
  VarianceRecord variances;
};

HeldOut score(const models::RegressionModel& model, const data::Dataset& test,
              const FitCommand& command, const Console& console) {
  models::PredictOptions options;
  options.memory = command.fit.method.memory;
  options.variance.rows = test.size();
  const models::Predictor predictor(model, options);
  const auto predictions = predictor.predict(test.inputs, console.progress(), test.noise);
  models::ScoreKeeper keeper;
  keeper.add(test.target, predictions.mean, predictions.sd_obs);
  HeldOut out{keeper.scores(), {predictor.plan().variance, 0.0, predictions.sd_error}};
  out.variances.add(predictions);
  return out;
}

struct FitRun {
  data::Dataset data;  // what was learned from
  models::FitResult result;
  std::optional<HeldOut> held_out;
  bool converged = false;
  bool written = false;
  double seconds = 0;
};

FitRun execute(FitCommand& command, data::Dataset data, const Console& console) {
  FitRun run;
  run.data = std::move(data);
  command.fit.standardize = !command.data.raw_scale;
  command.fit.merge = !command.no_merge;
  command.fit.mean_only = command.method == "krr";
  const auto test = hold_out(command, run.data);
  tell(run.data, console);
  std::optional<Trace> trace;
  if (!command.trace.empty()) trace.emplace(command.trace, command.validation, run.data.schema);
  run.result = models::fit(run.data, command.fit, stop_learning_first(console),
                           trace ? &trace->validation() : nullptr);
  run.converged = run.result.solve.stop == StopReason::converged;
  if (test) run.held_out = score(run.result.model, *test, command, console);
  clear_progress_line();
  if (run.converged || command.keep_unconverged) {
    run.result.model.save(command.model_path);
    run.written = true;
  }
  run.seconds = command.timer.seconds();
  return run;
}

/// The exact gradients that learning by solves took, null when it was by Cholesky.
Json gradients_json(const models::FitResult& result) {
  if (!result.plan.trains || result.plan.train_method == "exact") return nullptr;
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
          {"surrogate_evaluations", training.surrogate_evaluations},
          {"raised_conditionals", training.raised_conditionals},
          {"matvecs", training.matvecs}};
}

Json fit_json(const FitCommand& command, const FitRun& run) {
  const auto& result = run.result;
  Json json = {{"n", run.data.size()}, {"d", run.data.dimension()}};
  json["merged_rows"] = result.merged_rows;
  json["task"] = "regression";
  json["method"] = result.model.mean_only ? "krr" : "gp";
  json["kernel"] = result.model.problem.kernel.text();
  json["mean"] = std::string(to_string(result.model.problem.mean));
  json["trend_left_out"] = trend_left_out(result.model);
  json["plan"] = plan_json(result.plan);
  json["hyperparameters"] = hyperparameters_json(result.model.problem, result.model.scaling);
  json["log_marginal_likelihood"] = likelihood_json(
      result.likelihood, result.model.problem.parameter_names(), command.fit.standardize);
  json["certificate"] = certificate_json(result.model.certificate);
  put_method(json, result.plan, result.preconditioner);
  json["iterations"] = result.solve.iterations;
  json["inner_iterations"] = result.solve.inner_iterations;
  json["stop"] = std::string(to_string(result.solve.stop));
  json["fell_back_to_double"] = result.solve.fell_back_to_double;
  put(json, "jitter", result.jitter);
  put_training(json, result.plan, result.training);
  json["gradients"] = gradients_json(result);
  json["matvecs"] = result.training.matvecs + result.solve.matvecs;
  Json seconds;
  put(seconds, "total", run.seconds);
  put(seconds, "train", result.training.seconds);
  put(seconds, "solve", result.build_seconds + result.solve.seconds);
  json["seconds"] = std::move(seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(run.data, command.data.path);
  if (run.held_out) {
    json["evaluation"] = scores_json(run.held_out->scores);
    put_variances(json["evaluation"], run.held_out->variances);
  }
  json["model"] = run.written ? Json(command.model_path) : Json(nullptr);
  return json;
}

std::string training_line(const models::FitResult& result) {
  if (!result.plan.trains) return "Training     none: the hyperparameters are those given\n";
  const auto& training = result.training;
  const auto& plan = result.plan;
  const bool by_solves = plan.train_method != "exact";
  std::string text = "Training     ";
  if (training.evaluations > 0)
    text += fmt::format("{} of the exact likelihood on {} rows{}\n",
                        plural(training.evaluations, "evaluation"),
                        count(by_solves ? plan.start_rows : plan.train_rows),
                        by_solves ? "" : fmt::format(": {}", to_string(training.stop)));
  if (by_solves) {
    text += fmt::format("{}{} on {} rows: ", training.evaluations > 0 ? "             " : "",
                        plan.train_method, count(plan.train_rows));
    if (plan.train_method != "vecchia") text += gradients_text(training, "exact gradient");
    if (training.gradients() > 0 && training.surrogate_evaluations > 0) text += ", ";
    if (training.surrogate_evaluations > 0)
      text += plural(training.surrogate_evaluations, "evaluation") + " of the Vecchia likelihood";
    text += fmt::format(": {}\n", to_string(training.stop));
  }
  return text + gain_text(training, "log likelihood") + bounds_text(training);
}

std::string fit_text(const FitCommand& command, const FitRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  std::string text = fmt::format("Data         {}: {}, {}, target {}\n", command.data.path,
                                 plural(run.data.size(), "row"),
                                 plural(run.data.dimension(), "input"), model.schema.target);
  for (const auto& message : run.data.messages) text += fmt::format("             {}\n", message);
  if (result.merged_rows > 0)
    text += fmt::format("Merged       {} with the same inputs as an earlier row: {} are left\n",
                        plural(result.merged_rows, "row"), count(result.plan.n));
  text += fmt::format("Model        {}, kernel {}, mean {}\n",
                      model.mean_only ? "kernel ridge regression" : "Gaussian process",
                      model.problem.kernel.text(), to_string(model.problem.mean));
  text += fmt::format("Plan         {}\n", wrapped(result.plan.reason, 13));
  text += training_line(result);
  text += hyperparameters_text(model);
  if (result.likelihood.known)
    text +=
        fmt::format("Likelihood   {}{} (log, on {} rows, {})\n", number(result.likelihood.value, 7),
                    result.likelihood.method == "lanczos"
                        ? fmt::format(", 95 % interval {} to {}", number(result.likelihood.low, 7),
                                      number(result.likelihood.high, 7))
                        : "",
                    count(result.likelihood.rows),
                    command.data.raw_scale ? "units of the data" : "standardised units");
  if (result.jitter > 0)
    text += fmt::format("Jitter       {} was added to the noise: H was not positive definite\n",
                        number(result.jitter));
  if (result.solve.fell_back_to_double)
    text += "Precision    float32 products were not enough: the solve went on in double\n";
  text += certificate_text(model);
  text += fmt::format("Time         {} (training {}, solve {}); peak memory {}\n",
                      duration(run.seconds), duration(result.training.seconds),
                      duration(result.build_seconds + result.solve.seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  if (run.held_out) {
    const auto& scores = run.held_out->scores;
    text += fmt::format("Held out     {}\n{}", plural(scores.n, "row"), scores_text(scores)) +
            variances_text(run.held_out->variances);
  }
  if (run.written)
    text += fmt::format("Written      {0}\n\nNext: mercer predict {0} NEW.csv -o predictions.csv\n",
                        command.model_path);
  return text;
}

// What is worth a note or a warning once the model is there.
void tell_outcome(const FitCommand& command, const Arguments& arguments, const FitRun& run,
                  const Console& console) {
  tell_learning(arguments, run.result.plan, run.result.training, console);
  if (run.result.merged_rows > 0)
    console.note(fmt::format(
        "merged {} with an earlier one of the same inputs, which is exact (--no-merge keeps them "
        "apart)",
        plural(run.result.merged_rows, "row")));
  else if (run.data.duplicate_inputs > 0 && !command.no_merge)
    console.note("rows with the same inputs are not merged where noise variances are given");
  if (const auto names = trend_left_out(run.result.model); !names.empty())
    console.note(fmt::format(
        "the linear trend does without {}: on these rows the constant and the other inputs say the "
        "same (the kernel still uses {})",
        data::shown_list(names), names.size() == 1 ? "it" : "them"));
  if (!run.converged)
    console.warn(
        fmt::format("the tolerance {} was not reached ({}): the relative residual is {}; {}",
                    number(run.result.plan.system.tolerance, 3), to_string(run.result.solve.stop),
                    number(run.result.model.certificate.relative_residual, 3),
                    run.written ? "the model was written all the same, as --keep-unconverged says"
                                : "no model was written. Allow more --max-iterations, try another "
                                  "--preconditioner, or keep it with --keep-unconverged"));
}

}  // namespace

std::optional<data::Dataset> hold_out(const FitCommand& command, data::Dataset& data) {
  if (!command.test_fraction) return {};
  const bool standardize = !command.data.raw_scale;
  const auto split = data::split_rows(data.size(), *command.test_fraction, command.fit.method.seed);
  auto test = data::take_rows(data, split.test, standardize);
  data = data::take_rows(data, split.train, standardize);
  return test;
}

models::ProgressCallback stop_learning_first(const Console& console) {
  // Shared by the copies that are made of it.
  return [inner = console.progress(), &console,
          stopped = std::make_shared<bool>(false)](const models::Progress& progress) {
    const auto action = inner(progress);
    if (*stopped && progress.ends_stage) return Action::stop;
    if (action == Action::stop && progress.ends_stage) {
      *stopped = true;
      clear_interrupt();
      console.warn(
          "interrupted: learning stops here, the model is made with the values so far (Ctrl-C "
          "again to leave without it)");
    }
    return action;
  };
}

int run_fit(const Words& words) {
  Arguments arguments("fit",
                      "  mercer fit concrete.csv --target strength -m concrete.mcr\n"
                      "  mercer fit data.csv.gz --kernel \"rbf + linear\" --test-fraction 0.2",
                      "Learns a Gaussian process from a table: plans, learns the hyperparameters,\n"
                      "solves, certifies the result, and writes a model file. The target may be\n"
                      "a number, a class, a count, or a number with outliers (--likelihood).");
  FitCommand command;
  add_fit_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;
  if (command.model_path.empty()) command.model_path = default_model_path(command.data.path);

  apply(command.run);
  check_learning(command, arguments);
  check(command);
  settle_task(command, arguments);
  const Console console("fit", command.run.quiet);
  auto data = read(command.data);
  if (is_latent(command, arguments, data, console)) {
    tell(data, console);
    return run_fit_latent(command, arguments, std::move(data), console);
  }
  const FitRun run = execute(command, std::move(data), console);
  tell_outcome(command, arguments, run, console);
  if (command.run.json)
    print_json(fit_json(command, run));
  else
    print_out(fit_text(command, run));
  if (run.result.interrupted()) return exit_interrupted;
  return run.converged ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
