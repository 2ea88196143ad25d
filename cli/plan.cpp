// mercer plan: what a run would do, what it would cost and need. Nothing long is run.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/fit_command.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/streaming.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::cli {
namespace {

struct PlanRun {
  FitCommand fit;  // as far as it says what to do
  PlanCommand plan;

  const std::string& verb() const { return plan.verb; }
  models::PlanFor purpose() const {
    return verb() == "predict" ? models::PlanFor::predict : models::PlanFor::solve;
  }
};

std::string verdict(const models::PlanRow& row) {
  if (row.chosen) return "chosen";
  if (!row.allowed) return "ruled out";
  return row.fits ? "fits" : "too big";
}

// ", 3 to 8 passes over the rows".
std::string passes_text(const models::Plan& plan) {
  if (!plan.streamed) return "";
  return fmt::format(", {}{} passes over the rows",
                     plan.passes < plan.most_passes ? fmt::format("{} to ", plan.passes) : "",
                     plan.most_passes);
}

std::string plan_text(const models::Plan& plan) {
  Table table("lllrrl", {"", "stage", "method", "memory", "time", "note"});
  for (const auto& row : plan.rows) {
    const std::string note = row.note.empty() ? "" : ", " + row.note;
    table.row({row.chosen ? "*" : "", row.stage, row.method, format_bytes(row.bytes),
               duration(row.seconds), verdict(row) + note});
  }
  return fmt::format(
      "{} rows, {}; memory budget {}, of which program and {} take {}\n\n{}\n{}\n"
      "Estimate: {} in all, peak memory {}{}.\n",
      count(plan.n), plural(plan.d, "input"), format_bytes(plan.budget_bytes),
      plan.streamed ? fmt::format("{} of them", count(plan.reservoir)) : "data",
      format_bytes(plan.base_bytes), table.text(), wrapped(plan.reason, 0), duration(plan.seconds),
      format_bytes(plan.peak_bytes), passes_text(plan));
}

Json plan_record(const PlanRun& command, const Json& options, const models::Plan& plan,
                 const data::Dataset& data, bool for_fit) {
  Json json = {{"n", plan.n}, {"d", plan.d}, {"for", command.verb()}, {"task", command.fit.task}};
  if (for_fit) json["likelihood"] = likelihoods::make(command.fit.likelihood)->text();
  json.update(plan_json(plan));
  if (command.purpose() == models::PlanFor::predict) json["variance"] = plan.variance;
  json["options"] = options;
  json["data"] = data_json(data, command.fit.data.path);
  return json;
}

void add_plan_options(Arguments& arguments, PlanRun& command) {
  auto& fit = command.fit;
  arguments.positional("DATA", fit.data.path, "CSV file; - for standard input");
  arguments.group("Plan");
  arguments.add(command.plan);
  arguments.add(fit, only({"task", "method", "likelihood"}));
  arguments.add(fit.fit.approximation, without({"check_rows"}));
  add_data_options(arguments, fit.data);
  arguments.add(fit.fit, only({"merge"}));
  arguments.group("Learning");
  arguments.add(fit.fit.train, without({"checkpoint"}));
  add_method_options(arguments, fit.fit.method);
  add_run_options(arguments, fit.run);
  arguments.add_config();
}

// Without learning the plan is always for regression, even when fit would learn classes.
void settle_numbers(PlanRun& command, const Arguments& arguments) {
  auto& fit = command.fit;
  for (const auto& [option, given, numbers] :
       {std::tuple("task", fit.task, "regression"), {"likelihood", fit.likelihood, "gaussian"}})
    if (given != "auto" && given != numbers)
      throw InvalidArgument(
          fmt::format("`{}={}` is planned for fit only; leave `for` out", option, given));
  refuse_given(arguments,
               {"train", "steps", "restarts", "subset", "probes", "probe_kind", "budget", "merge",
                "method", "base", "optimize_base", "blocks_by", "stream", "reservoir"},
               fmt::format("{} learns nothing and merges nothing", command.verb()));
  fit.task = "regression";
  fit.data.options.target_advice = fmt::format(
      "--for {} is about numbers: name a numeric column with --target, or leave --for "
      "out to plan the learning of classes",
      command.verb());
}

// Where rows or plan do not fit and passes over the rows will do, the plan of those.
models::Plan plan_of_fit(PlanRun& command, const Arguments& arguments, FitInput& input,
                         const Console& console) {
  auto& fit = command.fit;
  settle_likelihood(fit, arguments, input.table(), console);
  if (!input.stream) {
    try {
      return models::plan_fit(input.all, fit.fit);
    } catch (const DoesNotFit&) {
      if (!may_stream(fit, arguments)) throw;
    }
    input = survey_rows(fit, console, "the plan does not fit into memory");
  }
  return models::plan_fit(*input.stream, fit.fit);
}

models::Plan make_plan(PlanRun& command, const Arguments& arguments, FitInput& input,
                       const Console& console) {
  auto& fit = command.fit;
  if (command.verb() == "fit") return plan_of_fit(command, arguments, input, console);
  const auto& data = input.all;
  const auto& method = fit.fit.method;
  const auto [scaling, rows] = models::scale(data, fit.data.options.standardize, method.isotropic);
  const auto problem = models::start_problem(method, data.schema, rows.x, rows.target());
  return planning::make_plan(problem.kernel, rows.noise.at(problem.noise()).harmonic_mean(), rows.x,
                             method, command.purpose());
}

}  // namespace

int run_plan(const Words& words) {
  Arguments arguments("plan",
                      "  mercer plan data.csv --target y --memory 4G\n"
                      "  mercer plan counts.csv --likelihood poisson",
                      "Shows every method with its memory and estimated time on this machine, and\n"
                      "which one a run would take and why. Times are estimates: iteration counts\n"
                      "are guessed from the size of the data and the noise.");
  PlanRun command;
  add_plan_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  auto& fit = command.fit;
  apply(fit.run);
  validate(command.plan);
  check_learning(fit, arguments);
  if (command.verb() == "fit") {
    settle_stream(fit, arguments);
    settle_task(fit, arguments);
  } else {
    settle_numbers(command, arguments);
  }
  const Console console("plan", fit.run.quiet);
  tell_config(arguments, console);
  auto input = read_rows(fit, arguments, console);
  tell(input.table(), console);
  const auto plan = make_plan(command, arguments, input, console);
  if (fit.run.json)
    print_json(
        plan_record(command, arguments.record(), plan, input.table(), command.verb() == "fit"));
  else
    print_out(plan_text(plan));
  return exit_ok;
}

}  // namespace mercer::cli
