// mercer sample: draws from the posterior of the hyperparameters, and a model that mixes over them.
#include <fmt/format.h>

#include <csignal>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/option_list.hpp"
#include "cli/sample_text.hpp"
#include "cli/signals.hpp"
#include "cli/verbs.hpp"
#include "mercer/planning/sampling_plan.hpp"
#include "mercer/training/sampling/prior.hpp"

namespace mercer::cli {
namespace {

void add_sample_options(Arguments& arguments, SampleCommand& command) {
  auto& fit = command.fit;
  arguments.positional("DATA", fit.data.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.add(command);
  arguments.add(fit, only({"model", "keep_unconverged"}));
  arguments.group("Sampling");
  arguments.add(command.options.sample);
  arguments.add(fit.fit.train, only({"probes", "probe_kind", "restarts", "checkpoint"}));
  arguments.appendix("Samplers", planning::describe_samplers());
  arguments.appendix("Priors", training::describe_priors());
  add_data_options(arguments, fit.data);
  arguments.add(fit.fit, only({"merge"}));
  arguments.group("Task");
  arguments.add(fit, only({"task", "likelihood"}));
  add_method_options(arguments, fit.fit.method);
  add_run_options(arguments, fit.run);
  arguments.add_config();
}

void check(const SampleCommand& command) {
  const auto& fit = command.fit;
  if (fit.run.json && command.output == "-")
    throw InvalidArgument("--json and -o - both want standard output; name a file with -o");
  check_output("--output", command.output, {fit.data.path});
  check_output_file("--model", fit.model_path, {fit.data.path});
  if (!command.picture.empty()) check_output_file("--picture", command.picture, {fit.data.path});
  const auto& checkpoint = fit.fit.train.checkpoint;
  if (!checkpoint.empty()) check_output_file("--checkpoint", checkpoint, {fit.data.path});
  if (same_file(checkpoint, fit.model_path) || same_file(checkpoint, command.output) ||
      same_file(fit.model_path, command.output))
    throw InvalidArgument("--output, --model and --checkpoint must be three files; two are one");
}

// The first Ctrl-C keeps the draws so far: sampling ends, and the model of them is still made.
// Before there are any the run ends.
ProgressCallback keep_what_was_drawn(const Console& console, bool& told) {
  return [inner = console.progress(), &console, &told](const Progress& progress) {
    const auto action = inner(progress);
    if (action == Action::stop || !PatientWithCtrlC::pressed()) return action;
    if (!progress.learned && !told) {
      leave(SIGINT);
      return Action::stop;
    }
    if (!told) {
      told = true;
      console.warn(
          "interrupted: the draws so far are kept, and the model of them is made; Ctrl-C again "
          "leaves without it");
    }
    return progress.ends_stage ? Action::stop : Action::proceed;
  };
}

std::string unconverged_text(const SampleRun& run) {
  const auto& result = run.result;
  return fmt::format(
      "the weights of a draw did not reach the tolerance {} ({}); {}",
      number(result.model.method.tolerance, 3), as_words(to_string(result.solve_stop)),
      !run.model_path.empty()
          ? "the model was written all the same, as --keep-unconverged says"
          : fmt::format("no model was written, the draws were. {}, or keep it with "
                        "--keep-unconverged",
                        solve_advice(result.plan.system, result.model.problem.gaussian(),
                                     result.solve_stop)));
}

}  // namespace

int run_sample(const Words& words) {
  Arguments arguments(
      "sample",
      "  mercer sample concrete.csv --target strength -o chains.csv -m concrete.mcr\n"
      "  mercer sample data.csv --kernel rbf:iso --prior \"lengthscale=inverse-gamma(5,5)\"",
      "Draws the hyperparameters from their posterior, instead of taking the best ones: chains\n"
      "of kept draws, how far they can be trusted, prior and posterior side by side, and a model\n"
      "whose predictions mix over the draws. The process itself is not approximated.");
  SampleCommand command;
  add_sample_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  auto& fit = command.fit;
  if (fit.model_path.empty()) fit.model_path = default_model_path(fit.data.path);
  apply(fit.run);
  check_learning(fit, arguments);
  validate(command.options.sample);
  validate(command);
  check(command);
  settle_task(fit, arguments);
  const Console console("sample", fit.run.quiet);
  tell_config(arguments, console);
  const auto replaced = replaced_model_note("--model", fit.model_path);
  const auto data = read(fit.data, console, fit.fit.method);
  settle_likelihood(fit, arguments, data, console);
  if (!replaced.empty()) console.note(replaced);
  command.options.fit = fit.fit;
  bool told = false;
  SampleRun run;
  {
    const PatientWithCtrlC patient;
    run.result = explain_factorisations(fit.fit.likelihood == "gaussian", [&] {
      return models::sample(data, command.options, keep_what_was_drawn(console, told));
    });
  }
  clear_progress_line();
  tell_draws(run.result, console);
  write_chains(command.output, run.result);
  if (!command.picture.empty()) draw_chains(command.picture, run.result);
  const bool converged = run.result.solve_stop == StopReason::converged;
  if (converged || fit.keep_unconverged) {
    run.result.model.save(fit.model_path);
    run.model_path = fit.model_path;
  }
  if (!converged) console.warn(unconverged_text(run));
  run.seconds = fit.timer.seconds();
  if (fit.run.json)
    print_json(sample_json(command, arguments, data, run));
  else if (command.output != "-")
    print_out(sample_text(command, data, run));
  if (run.result.interrupted()) return exit_code_when_stopped();
  return converged ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
