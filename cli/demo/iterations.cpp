// Section 6 of the demo: what the preconditioner saves. The system of the fit by plain conjugate
// gradients in a time box, and a smaller one by both until they converge.
#include <fmt/format.h>

#include <algorithm>

#include "cli/demo/parts.hpp"
#include "cli/format.hpp"

namespace mercer::cli::demo {
namespace {

// The system of the first rows, exactly as the model has it: with inputs divided by their
// lengthscales all lengthscales are one, which is what a study of solvers asks for.
studies::CompareResult run(const Setting& setting, const Field& field,
                           const models::KernelMachine& model, Index rows,
                           std::vector<std::string> preconditioners,
                           std::optional<double> seconds) {
  auto data = scaled_rows(field, model, rows);
  const auto values = models::standardised(model.problem);
  const auto lengthscales = values.lengthscales();
  for (Index j = 0; j < data.inputs.cols(); ++j)
    data.inputs.col(j) /= lengthscales[static_cast<std::size_t>(j)];
  studies::CompareOptions options;
  options.method.kernel = model.method.kernel;
  options.method.signal_variance = values.signal_variance;
  options.method.tolerance = model.method.tolerance;
  options.method.max_iterations = 1000000;
  options.method.seed = setting.seed;
  options.lengthscales = {1.0};
  options.noises = {*values.noise_variance};
  options.preconditioners = std::move(preconditioners);
  options.cell_seconds = seconds.value_or(1e9);
  options.standardize = false;
  auto result = studies::compare(data, options, setting.console.progress());
  if (result.interrupted) throw Interrupted("interrupted while comparing iterations");
  return result;
}

const studies::CompareRun& run_with(const studies::CompareResult& result, const std::string& name) {
  return *std::find_if(result.runs.begin(), result.runs.end(),
                       [&](const auto& run) { return run.preconditioner == name; });
}

std::string name_of(const std::string& name, Index rank, Index neighbours) {
  std::string text = name.empty() ? "none" : name;
  if (rank > 0) text += fmt::format(", rank {}", rank);
  if (neighbours > 0) text += fmt::format(", {} neighbours", neighbours);
  return text;
}

Json run_json(const studies::CompareRun& run, Index rows) {
  Json json = {{"n", rows},
               {"preconditioner", run.built.empty() ? run.preconditioner : run.built},
               {"rank", run.rank},
               {"iterations", run.iterations},
               {"converged", run.converged()},
               {"time_box_exceeded", run.timed_out}};
  put(json, "relative_residual", run.relative_residual);
  put(json, "seconds", run.seconds());
  return json;
}

}  // namespace

void compare_iterations(const Setting& setting, const Field& field, const models::FitResult& fit,
                        Json& json) {
  const auto& size = setting.size;
  const Index all = fit.model.x.rows();
  const auto large = run(setting, field, fit.model, all, {"none"}, size.plain_seconds);
  const Index few = std::min(size.to_the_end, all);
  const auto small = run(setting, field, fit.model, few, {"none", "auto"}, size.fit_seconds);
  const auto& plain = run_with(large, "none");
  const auto& plain_few = run_with(small, "none");
  const auto& auto_few = run_with(small, "auto");

  Table table("rlrrrl", {"rows", "preconditioner", "iterations", "residual", "time", ""});
  const auto add = [&](Index rows, const std::string& name, int iterations, double residual,
                       double seconds, bool stopped) {
    table.row({count(rows), name, count(iterations), number(residual, 2), duration(seconds),
               stopped ? "stopped by its time box" : ""});
  };
  const auto& built = fit.preconditioner;
  add(all, name_of(built.name, built.rank, built.neighbours), fit.solve.iterations,
      fit.solve.relative_residual, fit.build_seconds + fit.solve.seconds, false);
  add(all, "none", plain.iterations, plain.relative_residual, plain.seconds(), plain.timed_out);
  for (const auto* run : {&auto_few, &plain_few})
    add(few, name_of(run->built, run->rank, run->neighbours), run->iterations,
        run->relative_residual, run->seconds(), run->timed_out);

  std::string ratio = "Neither size was solved both ways within the time boxes.";
  const auto times = [](int plain_count, int count) {
    return static_cast<double>(plain_count) / std::max(1, count);
  };
  json["iterations"] = {{"plain", run_json(plain, all)},
                        {"few_plain", run_json(plain_few, few)},
                        {"few_auto", run_json(auto_few, few)}};
  if (plain_few.converged() && auto_few.converged()) {
    const double fewer = times(plain_few.iterations, auto_few.iterations);
    put(json["iterations"], "ratio_few", fewer);
    ratio = fmt::format(
        "On {} rows, where plain conjugate gradients can be run to the end, the "
        "preconditioner takes {:.0f} times fewer iterations.",
        count(few), fewer);
  }
  if (plain.converged()) {
    const double fewer = times(plain.iterations, fit.solve.iterations);
    put(json["iterations"], "ratio", fewer);
    ratio += fmt::format(" On all {} rows it takes {:.0f} times fewer.", count(all), fewer);
  } else {
    ratio += fmt::format(
        " On all {} rows plain conjugate gradients were at a residual of {} after {} iterations, "
        "when their time box of {} ended; the preconditioned ones had needed {} to reach {}.",
        count(all), number(plain.relative_residual, 2), count(plain.iterations),
        duration(size.plain_seconds.value_or(0)), count(fit.solve.iterations),
        number(fit.solve.relative_residual, 2));
  }
  setting.section("Preconditioner",
                  "The same system, which the fit solved in few iterations, without its "
                  "preconditioner. " +
                      ratio);
  setting.table(table.text(3));
}

}  // namespace mercer::cli::demo
