// mercer plan: what a run would do, what it would cost and need. Nothing long is run.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/suggest.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/models/latent_training.hpp"
#include "mercer/models/merging.hpp"

namespace mercer::cli {
namespace {

std::string verdict(const models::PlanRow& row) {
  if (row.chosen) return "chosen";
  if (!row.allowed) return "ruled out";
  return row.fits ? "fits" : "too big";
}

std::string plan_text(const models::Plan& plan) {
  Table table("lllrrl", {"", "stage", "method", "memory", "time", "note"});
  for (const auto& row : plan.rows) {
    const std::string note = row.note.empty() ? "" : ", " + row.note;
    table.row({row.chosen ? "*" : "", row.stage, row.method, format_bytes(row.bytes),
               duration(row.seconds), verdict(row) + note});
  }
  return fmt::format(
      "{} rows, {}; memory budget {}, of which program and data take {}\n\n{}\n{}\n"
      "Estimate: {} in all, peak memory {}.\n",
      count(plan.n), plural(plan.d, "input"), format_bytes(plan.budget_bytes),
      format_bytes(plan.base_bytes), table.text(), wrapped(plan.reason, 0), duration(plan.seconds),
      format_bytes(plan.peak_bytes));
}

models::Plan plan_numbers(const data::Dataset& data, bool standardize, bool no_merge,
                          const models::MethodOptions& method, const models::TrainOptions& train,
                          models::PlanFor purpose) {
  auto [scaling, rows] = models::scale(data, standardize);
  const auto problem = models::start_problem(method, rows.x, rows.y);
  if (purpose == models::PlanFor::fit && !no_merge)
    rows = models::merge_replicates(std::move(rows));
  return models::make_plan(problem.kernel, rows.noise.at(problem.noise).harmonic_mean(), rows.x,
                           method, train, purpose);
}

models::Plan plan_classes(const data::Dataset& data, bool standardize,
                          const models::MethodOptions& method, const models::TrainOptions& train) {
  const auto rows = models::scale(data, standardize).data;
  const auto kernel = models::start_problem(method, rows.x, rows.y).kernel;
  return models::plan_latent(kernel, rows.x, models::find_classes(data).functions(), method, train);
}

}  // namespace

int run_plan(const Words& words) {
  Arguments arguments("plan", "  mercer plan data.csv --target y --memory 4G",
                      "Shows every method with its memory and estimated time on this machine, and\n"
                      "which one a run would take and why. Times are estimates: iteration counts\n"
                      "are guessed from the size of the data and the noise.");
  RunOptions run;
  DataFlags flags;
  models::MethodOptions method;
  models::TrainOptions train;
  std::string verb = "fit";
  bool no_merge = false;
  std::string task = "auto";
  arguments.positional("DATA", flags.path, "CSV file; - for standard input");
  arguments.group("Plan");
  arguments.option("--for", "VERB", verb, "fit | solve | predict: the run to plan");
  arguments.option("--task", "NAME", task, "auto | regression | classification; for fit, as there");
  add_data_options(arguments, flags);
  add_noise_options(arguments, flags);
  add_merge_option(arguments, no_merge);
  add_train_options(arguments, train);
  add_method_options(arguments, method);
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;

  apply(run);
  require_choice("--for", verb, {"fit", "solve", "predict"});
  require_choice("--task", task, {"auto", "regression", "classification"});
  if (verb != "fit" && task == "classification")
    throw InvalidArgument("--task classification is planned for fit only; leave --for out");
  models::check(method);
  models::check(train);
  if (train.train == "none")
    refuse_train_options(arguments,
                         {"--steps", "--restarts", "--subset", "--probes", "--probe-kind"},
                         "--train none learns nothing");
  if (verb != "fit")
    refuse_train_options(
        arguments,
        {"--train", "--steps", "--restarts", "--subset", "--probes", "--probe-kind", "--no-merge"},
        fmt::format("{} learns nothing and merges nothing", verb));
  const Console console("plan", run.quiet);
  flags.options.text_target = verb == "fit" && task != "regression";
  const auto data = read(flags, console);
  const auto purpose = verb == "fit"     ? models::PlanFor::fit
                       : verb == "solve" ? models::PlanFor::solve
                                         : models::PlanFor::predict;
  const bool classes =
      verb == "fit" &&
      (task == "classification" ||
       (task == "auto" && !asks_for_numbers(arguments) && models::looks_like_classes(data)));
  if (classes) refuse_gaussian_options(arguments, "classes have no Gaussian noise");
  const auto plan = classes
                        ? plan_classes(data, !flags.raw_scale, method, train)
                        : plan_numbers(data, !flags.raw_scale, no_merge, method, train, purpose);
  if (!run.json) {
    print_out(plan_text(plan));
    return exit_ok;
  }
  Json json = {{"n", plan.n}, {"d", plan.d}, {"for", verb}};
  json["task"] = classes ? "classification" : "regression";
  json.update(plan_json(plan));
  if (purpose == models::PlanFor::predict) json["variance"] = plan.variance;
  json["data"] = data_json(data, flags.path);
  print_json(json);
  return exit_ok;
}

}  // namespace mercer::cli
