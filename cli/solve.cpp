// mercer solve: one linear system H a = y with fixed hyperparameters, and how good its solution is.
#include "mercer/models/solve.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/option_list.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/csv_writer.hpp"

namespace mercer::cli {
namespace {

void write_solution(const std::string& path, const Vector& solution) {
  data::CsvWriter writer(path, {"a"});
  writer.rows(solution);
  writer.close();
}

void write_history(const std::string& path, const History& residuals) {
  Matrix rows(residuals.rows(), 2);
  for (Index i = 0; i < rows.rows(); ++i) {
    rows(i, 0) = static_cast<double>(i + 1);
    rows(i, 1) = residuals.worst(i);
  }
  data::CsvWriter writer(path, {"iteration", "relative_residual"});
  writer.rows(rows);
  writer.close();
}

Json history_json(const History& residuals) {
  Json values = Json::array();
  for (Index i = 0; i < residuals.rows(); ++i) values.push_back(residuals.worst(i));
  return values;
}

Json random_stop_json(const krylov::RandomStop& stop) {
  Json json = {{"early_iterations", stop.early_iterations ? Json(*stop.early_iterations) : Json()},
               {"extra_iterations", stop.extra_iterations},
               {"heavy_tail", stop.heavy_tail}};
  put(json, "expected_extra_iterations", stop.expected_extra_iterations);
  put(json, "energy_variance", stop.energy_variance);
  return json;
}

Json solve_json(const data::Dataset& data, const std::string& path, const Json& options,
                const models::SolveOutcome& outcome) {
  const auto& report = outcome.report;
  Json json = {{"n", data.size()}, {"d", data.dimension()}};
  put_method(json, outcome.plan, outcome.preconditioner);
  json["iterations"] = report.iterations;
  json["inner_iterations"] = report.inner_iterations;
  json["matvecs"] = report.matvecs;
  put(json, "build_seconds", outcome.build_seconds);
  put(json, "solve_seconds", report.seconds);
  put(json, "relative_residual", report.relative_residual);
  put(json, "tolerance", outcome.plan.system.tolerance);
  json["stop"] = std::string(to_string(report.stop));
  if (!report.random_stops.empty())
    json["random_stop"] = random_stop_json(report.random_stops.front());
  json["residuals"] = history_json(report.residuals);
  json["hyperparameters"] = hyperparameters_json(outcome.problem, outcome.scaling);
  put(json, "mean_error_bound", outcome.mean_error_bound);
  put(json, "mean_error_estimate", outcome.mean_error_estimate);
  put(json, "accuracy", outcome.accuracy);
  if (!outcome.accuracy_missed.empty())
    json["accuracy_missed"] = with_dashes(outcome.accuracy_missed);
  put(json, "jitter", outcome.jitter);
  json["fell_back_to_double"] = report.fell_back_to_double;
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["plan"] = plan_json(outcome.plan);
  json["options"] = options;
  json["data"] = data_json(data, path);
  return json;
}

// When draws began and how they went; nothing when the solver does not draw.
std::string random_stop_text(const models::SolveOutcome& outcome) {
  const auto& report = outcome.report;
  if (report.random_stops.empty()) return "";
  const auto& stop = report.random_stops.front();
  const auto& rule = *outcome.plan.system.random_stop;
  if (!stop.early_iterations)
    return "Draws        none: the early tolerance was not reached before the end\n";
  auto text = fmt::format(
      "Draws        from residual {} on, after {}: {} more, about {} expected\n"
      "             This is one random solution. Over seeds their mean is the one with the\n"
      "             residual of the tolerance\n",
      number(rule.early_tolerance, 2), plural(*stop.early_iterations, "iteration"),
      stop.extra_iterations, number(stop.expected_extra_iterations, 2));
  if (stop.heavy_tail)
    text +=
        "             Heavy tail: the variance over seeds is in draws that hardly ever happen\n";
  return text;
}

std::string solve_text(const data::Dataset& data, const models::SolveOutcome& outcome) {
  const auto& report = outcome.report;
  const auto& system = outcome.plan.system;
  std::string text = fmt::format("System       {} rows, {}\n", count(data.size()),
                                 plural(data.dimension(), "input"));
  text += fmt::format(
      "Method       {}, {} operator, {} precision, preconditioner {}{}\n", system.solver,
      operator_name(system), to_string(system.precision), outcome.preconditioner.name,
      outcome.preconditioner.rank > 0 ? fmt::format(" of rank {}", outcome.preconditioner.rank)
                                      : "");
  text += hyperparameters_text(outcome.problem, outcome.scaling, data.schema);
  text += fmt::format("Result       {}; {}, {} with K\n", as_words(to_string(report.stop)),
                      plural(report.iterations, "iteration"), plural(report.matvecs, "product"));
  text += random_stop_text(outcome);
  if (outcome.jitter > 0) text += jitter_text(outcome.jitter);
  if (report.fell_back_to_double)
    text += "Precision    float32 products were not enough: the solve went on in double\n";
  text += fmt::format("Residual     {} (relative, true, in double{}); tolerance {}\n",
                      number(report.relative_residual, 3),
                      outcome.jitter > 0 ? ", of the system with the jitter" : "",
                      number(system.tolerance, 3));
  text += fmt::format(
      "Certificate  every mean predicted from it is within {} of the exact one, probably {}\n",
      number(outcome.mean_error_bound, 3), number(outcome.mean_error_estimate, 2));
  if (!outcome.accuracy_missed.empty()) text += accuracy_missed_text(outcome.accuracy_missed);
  text += fmt::format("Time         {} to build, {} to solve; peak memory {}\n",
                      duration(outcome.build_seconds), duration(report.seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  return text;
}

}  // namespace

int run_solve(const Words& words) {
  Arguments arguments("solve",
                      "  mercer solve data.csv --target y --kernel rbf --lengthscale 1.5 "
                      "--noise 0.01 \\\n      --solver cg --preconditioner none --tolerance 1e-8",
                      "Solves H a = y, H = K + noise I, once, with the hyperparameters as given\n"
                      "(unset ones take start values from the data, which are printed).");
  RunOptions run;
  DataFlags flags;
  models::FitOptions options;
  SolveCommand command;
  const auto& [output, history] = command;
  arguments.positional("DATA", flags.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.add(command);
  add_data_options(arguments, flags);
  add_method_options(arguments, options.method, {"mean"});
  add_run_options(arguments, run);
  arguments.add_config();
  if (!arguments.parse(words)) return exit_ok;

  apply(run);
  planning::check(options.method);
  if (options.method.solver == inference::kCholesky)
    refuse_given(arguments, {"max_iterations"}, "a factorisation has no iterations");
  if (run.json && output == "-")
    throw InvalidArgument("--json and -o - both want standard output; name a file with -o");
  if (!output.empty()) check_output("--output", output, {flags.path});
  if (!history.empty()) check_output_file("--history", history, {flags.path});
  if (!history.empty() && same_file(history, output))
    throw InvalidArgument("--history and --output name the same file; name two");
  const Console console("solve", run.quiet);
  tell_config(arguments, console);
  const auto data = read(flags, console, options.method);
  options.standardize = flags.options.standardize;
  const auto outcome = models::solve(data, options, console.progress());
  clear_progress_line();
  // A random stop is what was asked for: the solution is written, with the residual that it has.
  const bool as_promised = outcome.report.stop == StopReason::converged ||
                           outcome.report.stop == StopReason::random_stop;
  if (!outcome.report.random_stops.empty() && outcome.report.random_stops.front().heavy_tail)
    console.warn(
        "the draws have a heavy tail: samples look better than they are, and their mean is hardly "
        "ever reached. Take --continuation residual, or a smaller --beta");
  if (!as_promised)
    console.warn(fmt::format(
        "the tolerance {} was not reached ({}): the relative residual is {}{}. {}",
        number(outcome.plan.system.tolerance, 3), as_words(to_string(outcome.report.stop)),
        number(outcome.report.relative_residual, 3),
        output.empty() ? "" : "; the solution was not written",
        solve_advice(outcome.plan.system, true, outcome.report.stop)));
  if (!history.empty()) write_history(history, outcome.report.residuals);
  if (!output.empty() && as_promised) write_solution(output, outcome.solution);
  if (run.json)
    print_json(solve_json(data, flags.path, arguments.record(), outcome));
  else if (output != "-")
    print_out(solve_text(data, outcome));
  return as_promised ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
