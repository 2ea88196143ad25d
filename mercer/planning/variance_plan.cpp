#include "mercer/planning/variance_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/approximations/local_variance.hpp"
#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/pathwise.hpp"

namespace mercer::planning {
namespace {

// Exact variances that take longer than this, on a typical machine, are left to neighbours.
constexpr double kLongestExact = 60;
// The share of a run that the check of its variances may take, if more than the least of rows are
// to be checked.
constexpr double kCheckShare = 0.25;

// One variance given so many of n points.
double neighbours_seconds(const inference::Speeds& speeds, const kernels::Kernel& kernel, Index n,
                          Index d, Index neighbours) {
  using approximations::LocalVariance;
  preconditioners::Cost cost;
  cost.thin_flops = LocalVariance::flops(n, d, neighbours);
  cost.kernel_values = LocalVariance::kernel_values(kernel, n, neighbours);
  return inference::build_seconds(speeds, cost, 0);
}

// By neighbours and by draws; what they solve has a row of its own.
PlanRow vecchia_row(const kernels::Kernel& kernel, const VarianceOptions& options,
                    const Plan& plan) {
  using approximations::LocalVariance;
  const Index m = std::min(options.neighbours_or_default(), plan.n);
  PlanRow row;
  row.method = fmt::format("vecchia, {} neighbours", m);
  row.bytes = LocalVariance::bytes(plan.n, plan.d, m);
  row.seconds = static_cast<double>(options.rows) *
                neighbours_seconds(plan.calibration, kernel, plan.n, plan.d, m);
  return row;
}

// Draws that the method makes; `auto` may come to need some.
Index draws_of(const VarianceOptions& options, const std::string& method) {
  return method == "samples" ? std::max(options.draws, options.joint_samples)
                             : options.joint_samples;
}

PlanRow samples_row(const System& system, const VarianceOptions& options, const Plan& plan) {
  using inference::PathwiseDraws;
  const Index asked = options.draws_needed(), functions = system.functions.count;
  const Index count = asked > 0 ? asked : options.draws;
  const inference::PathwiseOptions draws{.count = count * functions};
  PlanRow row;
  row.method = fmt::format("samples, {} draws", count);
  row.bytes = PathwiseDraws::bytes(plan.n, draws);
  row.seconds = static_cast<double>(plan.n + options.rows) *
                PathwiseDraws::flops(plan.n, plan.d, draws) / plan.calibration.flops;
  row.note = PathwiseDraws::refusal(system.kernel);
  row.allowed = row.note.empty();
  return row;
}

// What `auto` becomes where exact variances take too long. Functions that are coupled have no
// neighbours of their own.
struct Instead {
  std::string method;
  const char* words;
};

Instead instead_of_exact(const System& system) {
  return system.functions.coupled
             ? Instead{"samples", "taken over draws"}
             : Instead{"vecchia", "those given the most correlated training points"};
}

// What `auto` stands for; plans exact variances where they are chosen.
std::string choose(const System& system, const VarianceOptions& options, Index checks, Plan& plan,
                   const PlanSystem& plan_system) {
  if (options.method != "auto" && options.method != "exact") return options.method;
  Plan exact = plan;
  const auto instead = instead_of_exact(system);
  const double seconds = plan_system({.rows = static_cast<double>(options.rows),
                                      .draws = static_cast<double>(options.joint_samples)},
                                     exact);
  const bool possible =
      instead.method != "samples" || inference::PathwiseDraws::refusal(system.kernel).empty();
  // Rows that would all be checked may as well be exact.
  if (options.method == "exact" || options.rows <= checks || seconds <= kLongestExact ||
      !possible) {
    plan = std::move(exact);
    return "exact";
  }
  for (auto& row : exact.rows) row.chosen = false;
  plan.rows = std::move(exact.rows);
  plan.reason += fmt::format(
      "Variances are {}, because exact ones of {} rows would take more than {:.0f} s on a typical "
      "machine. ",
      instead.words, count_text(options.rows), kLongestExact);
  return instead.method;
}

// Seconds of the predictions themselves on a typical machine: means, and variances by neighbours or
// by draws.
double rest_seconds(const CheckedRun& run, const inference::Speeds& speeds) {
  const auto rows = static_cast<double>(run.rows);
  const auto functions = static_cast<double>(run.functions.count);
  const Index block = std::max<Index>(1, run.plan.variance_block);
  // Means; draws are columns of the same product, and were solved for in blocks.
  double seconds = rows * static_cast<double>(run.n) * speeds.pair_seconds_double;
  if (!run.functions.coupled) seconds *= functions;
  if (run.plan.variance == "vecchia")
    return seconds + rows * functions *
                         neighbours_seconds(speeds, run.kernel, run.n, run.d,
                                            std::min(run.options.neighbours_or_default(), run.n));
  const inference::PathwiseOptions draws{
      .count = std::max(run.options.draws, run.options.joint_samples) * run.functions.count};
  seconds += rows * inference::PathwiseDraws::flops(run.n, run.d, draws) / speeds.flops;
  const auto& system = run.plan.system;
  return seconds +
         static_cast<double>(run.matvecs) / static_cast<double>(block) *
             inference::product_seconds(speeds, run.n, system.op, system.precision, block);
}

}  // namespace

Index further_checks(const CheckedRun& run, Index checked, int iterations) {
  const auto& system = run.plan.system;
  const Index coupled = run.functions.coupled ? run.functions.count : 1;
  const Index most = run.options.most_checks(coupled) - checked;
  if (most <= 0 || run.options.check_rows || system.direct()) return std::max<Index>(0, most);
  const auto speeds = inference::nominal_speeds(run.kernel, run.d);
  const auto seconds = [&](Index rows) {
    return iterations * inference::product_seconds(speeds, run.n, system.op, system.precision,
                                                   rows * coupled * coupled);
  };
  const double left =
      kCheckShare / (1 - kCheckShare) * rest_seconds(run, speeds) - seconds(checked);
  Index rows = most;
  while (rows > 0 && seconds(rows) > left) --rows;
  return rows;
}

void plan_variances(const System& system, const VarianceOptions& options, Plan& plan,
                    const PlanSystem& plan_system) {
  auto samples = samples_row(system, options, plan);
  if (options.draws_needed() > 0 && !samples.allowed)
    throw InvalidArgument(fmt::format("there are no draws with this kernel: {}", samples.note));
  const Index checks = std::min(options.least_checks(), options.rows);
  plan.variance = choose(system, options, checks, plan, plan_system);
  const Index draws = draws_of(options, plan.variance);
  samples.chosen = draws > 0;
  if (plan.variance != "exact") {
    const Index solved = plan.variance == "none" ? 0 : checks;
    const auto first = static_cast<std::ptrdiff_t>(plan.rows.size());
    plan.solves = draws + solved > 0;
    if (plan.solves)
      plan_system({.rows = static_cast<double>(solved),
                   .draws = static_cast<double>(draws),
                   .loose = draws == 0},
                  plan);
    std::for_each(plan.rows.begin() + first, plan.rows.end(),
                  [&](PlanRow& row) { row.stage = samples.chosen ? "draw" : "check"; });
  }
  std::vector<PlanRow> ways = {samples};
  if (!system.functions.coupled) {
    ways.insert(ways.begin(), vecchia_row(system.kernel, options, plan));
    ways.front().chosen = plan.variance == "vecchia";
  }
  for (auto& row : ways) {
    row.stage = "predict";
    row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
    if (row.chosen) plan.seconds += row.seconds;
    if (row.chosen) plan.peak_bytes += row.bytes;
    plan.rows.push_back(row);
  }
  if (plan.peak_bytes > plan.budget_bytes)
    throw DoesNotFit(fmt::format("predicting needs {}, more than the {} there are",
                                 format_bytes(plan.peak_bytes), format_bytes(plan.budget_bytes)));
}

}  // namespace mercer::planning
