// mercer fit: learns hyperparameters, solves, certifies, and writes a model file.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/fit_text.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/signals.hpp"
#include "cli/trace.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/split.hpp"

namespace mercer::cli {
namespace {

void add_fit_options(Arguments& arguments, FitCommand& command) {
  arguments.positional("DATA", command.data.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.add(command, only({"model", "keep_unconverged", "test_fraction"}));
  add_data_options(arguments, command.data);
  arguments.add(command.fit, only({"merge", "gradient"}));
  arguments.group("Learning");
  arguments.add(command.fit.train);
  arguments.appendix("Training methods", planning::describe_trainers());
  arguments.appendix("Inference methods", planning::describe_inference());
  arguments.add(command, only({"validation", "trace"}));
  arguments.group("Task");
  arguments.add(command);
  arguments.group("Approximation (--method NAME, with --rank and --blocks)");
  arguments.add(command.fit.approximation);
  add_method_options(arguments, command.fit.method);
  add_run_options(arguments, command.run);
  arguments.add_config();
}

void check(const FitCommand& command) {
  if (command.data.path == "-" && command.validation == "-")
    throw InvalidArgument(
        "DATA and --validation are both standard input, which can be read once only; name a file "
        "for one of them");
  check_output_file("--model", command.model_path, {command.data.path, command.validation});
  const auto& checkpoint = command.fit.train.checkpoint;
  if (!checkpoint.empty())
    check_output_file("--checkpoint", checkpoint, {command.data.path, command.validation});
  if (command.trace.empty() != command.validation.empty())
    throw InvalidArgument("--trace and --validation belong together: give both or none");
  if (!command.trace.empty())
    check_output_file("--trace", command.trace, {command.data.path, command.validation});
  if (!command.trace.empty() &&
      (same_file(command.trace, command.model_path) || same_file(command.trace, checkpoint)))
    throw InvalidArgument("--trace names a file that --model or --checkpoint writes; name another");
  if (same_file(checkpoint, command.model_path))
    throw InvalidArgument("--checkpoint and --model name the same file; name two");
}

HeldOut score(const models::KernelMachine& model, const data::Dataset& test,
              const FitCommand& command, const Console& console) {
  models::PredictOptions options;
  options.memory = command.fit.method.memory;
  options.variance.rows = test.size();
  const models::Predictor predictor(model, options);
  const auto predictions = predictor.predict(test.inputs, console.progress(), test.noise);
  models::PredictionScores scores(predictor);
  scores.add(predictions, test.target,
             [](Index row) { return fmt::format("row {} of those held out", row + 1); });
  HeldOut out{scores.scores(), {predictor.plan().variance, 0.0, predictions.sd_error}};
  out.variances.add(predictions);
  return out;
}

// Takes the rows of --test-fraction out of the data; none when it is not given.
std::optional<data::Dataset> hold_out(const FitCommand& command, data::Dataset& data) {
  if (!command.test_fraction) return {};
  const bool standardize = command.data.options.standardize;
  const auto split = data::split_rows(data.size(), *command.test_fraction, command.fit.method.seed);
  auto test = data::take_rows(data, split.test, standardize);
  data = data::take_rows(data, split.train, standardize);
  return test;
}

// What the first Ctrl-C leads to, said at once.
std::string after_ctrl_c(const Progress& progress) {
  const auto time = progress.seconds_after >= 0
                        ? fmt::format(" (planned: about {})", duration(progress.seconds_after))
                        : "";
  if (progress.ends_stage)
    return fmt::format(
        "interrupted: learning stops here, and the model of the values so far is made{}; Ctrl-C "
        "again leaves without it",
        time);
  return fmt::format(
      "interrupted: learning is done, and its model is still being made{}; Ctrl-C again leaves "
      "without it",
      time);
}

// The first Ctrl-C keeps what was learned: learning ends, the model is still made. Where nothing
// was learned yet there is nothing to keep, and the run ends. `told`: whether that was said; a
// Ctrl-C that comes later changes nothing any more.
ProgressCallback keep_what_was_learned(const Console& console, bool& told) {
  return [inner = console.progress(), &console, &told](const Progress& progress) {
    const auto action = inner(progress);
    if (action == Action::stop || !PatientWithCtrlC::pressed()) return action;
    if (!progress.learned && !told) {
      leave(SIGINT);
      return Action::stop;
    }
    if (!told) {
      told = true;
      console.warn(after_ctrl_c(progress));
    }
    return progress.ends_stage ? Action::stop : Action::proceed;
  };
}

// A model that cost hours is not lost because its folder has no room: it goes to the first place
// that takes it, and the run says where.
void save(FitRun& run, const std::string& path, const Console& console) {
  try {
    run.result.model.save(path);
    run.model_path = path;
    return;
  } catch (const IoError& error) {
    for (const auto& other : fallback_paths(path)) {
      try {
        run.result.model.save(other);
      } catch (const IoError&) {
        continue;
      }
      run.model_path = other;
      run.misplaced = true;
      console.warn(fmt::format("{}; the model was written to '{}' instead", error.what(), other));
      return;
    }
    throw Failure(
        exit_internal,
        fmt::format("{}; nor could the model be written to the temporary, current or home folder: "
                    "what was "
                    "learned is kept by `checkpoint=FILE` only, if that was given",
                    error.what()));
  }
}

FitRun execute(const FitCommand& command, FitInput input, const Console& console) {
  FitRun run;
  run.input = std::move(input);
  const auto test = hold_out(command, run.input.all);
  tell(run.data(), console);
  std::optional<Trace> trace;
  if (!command.trace.empty())
    trace.emplace(command.trace, command.validation, run.data().schema, command.fit,
                  command.data.options.delimiter);
  const PatientWithCtrlC patient;
  const auto progress = keep_what_was_learned(console, run.interrupted);
  const auto* validation = trace ? &trace->validation() : nullptr;
  run.result = run.input.stream ? models::fit(*run.input.stream, command.fit, progress, validation)
                                : models::fit(run.input.all, command.fit, progress, validation);
  if (trace && !trace->failure().empty()) console.warn(trace->failure());
  run.converged = run.result.solve.stop == StopReason::converged;
  if (test) run.held_out = score(run.result.model, *test, command, console);
  clear_progress_line();
  if (run.converged || command.keep_unconverged) {
    save(run, command.model_path, console);
  }
  run.seconds = command.timer.seconds();
  return run;
}

// Rows that fit into memory with a plan that does not: where passes over them will do, those.
FitRun execute_or_stream(FitCommand& command, const Arguments& arguments, FitInput input,
                         const Console& console) {
  const bool streamed = input.stream.has_value();
  try {
    return execute(command, std::move(input), console);
  } catch (const DoesNotFit&) {
    if (streamed || !may_stream(command, arguments)) throw;
  }
  return execute(command, survey_rows(command, console, "the plan does not fit into memory"),
                 console);
}

// Runs `body`; stopped after something was learned, it says where that is kept.
template <class Body>
auto name_checkpoint(const std::string& checkpoint, const Body& body) {
  try {
    return body();
  } catch (const Interrupted& stopped) {
    const std::string text = stopped.what();
    std::error_code ignored;
    if (checkpoint.empty() || text.find(checkpoint) != std::string::npos ||
        !std::filesystem::exists(checkpoint, ignored))
      throw;
    throw Interrupted(fmt::format(
        "{}; '{}' holds what was learned, the same command goes on from there", text, checkpoint));
  }
}

}  // namespace

int run_fit(const Words& words) {
  Arguments arguments("fit",
                      "  mercer fit concrete.csv --target strength -m concrete.mcr\n"
                      "  mercer fit data.csv.gz --kernel \"rbf + linear\" --test-fraction 0.2\n"
                      "  mercer fit data.csv.gz --method vfe --rank 500 --check-rows 64",
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
  settle_stream(command, arguments);
  settle_task(command, arguments);
  const Console console("fit", command.run.quiet);
  tell_config(arguments, console);
  const auto replaced = replaced_model_note("--model", command.model_path);
  auto input = read_rows(command, arguments, console);
  settle_likelihood(command, arguments, input.table(), console);
  if (!replaced.empty()) console.note(replaced);
  const FitRun run = explain_factorisations(command.fit.likelihood == "gaussian", [&] {
    return name_checkpoint(command.fit.train.checkpoint, [&] {
      return execute_or_stream(command, arguments, std::move(input), console);
    });
  });
  tell_outcome(command, arguments, run, console);
  if (command.run.json)
    print_json(fit_json(command, arguments, run));
  else
    print_out(fit_text(command, run));
  if (run.misplaced) return exit_internal;
  if (run.interrupted) return exit_code_when_stopped();
  return run.converged ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
