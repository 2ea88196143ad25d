#include "mercer/planning/approximation_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/planning/training_plan.hpp"
#include "mercer/training/approximate_climb.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

// Evaluations of the evidence with its gradient that a climb with the base points moving usually
// takes.
constexpr double kUsualBaseEvaluations = 50;
// Numbers in the array that base points are chosen by, at most (sparse_setup.cpp).
constexpr double kMostChosenFrom = 67108864;

// What one evaluation of an approximation depends on.
struct ApproximationSetting {
  const inference::Problem& problem;
  const inference::Observations& rows;
  const inference::SparseSetup& sparse;
  const Plan& plan;
};

// Given points are as many as they are; of fewer rows than base points, all are taken.
inference::SparseSetup cut_to(inference::SparseSetup sparse, Index rows) {
  if (sparse.points.rows() > 0) sparse.rank = sparse.points.rows();
  if (sparse.rank) sparse.rank = std::min(*sparse.rank, rows);
  return sparse;
}

inference::CostSetting setting_of(const ApproximationSetting& s, Index rows) {
  const Index d = s.rows.x.cols();
  return {.n = rows,
          .d = d,
          .functions = {s.rows.functions(), s.problem.likelihood->coupled() != nullptr},
          .columns = 1 + inference::mean_basis_size(s.problem.mean, d),
          .parameters = s.problem.kernel.num_parameters(),
          .speed = s.plan.calibration,
          .rank = inference::base_count(rows, cut_to(s.sparse, rows)),
          .blocks = s.sparse.blocks};
}

inference::EvaluationCost cost_of(const inference::InferenceInfo& entry,
                                  const ApproximationSetting& s, Index rows) {
  return entry.cost(setting_of(s, rows));
}

// A climb of L-BFGS: the levels before all of these rows, and what it usually takes.
struct Climb {
  std::vector<Index> levels;
  double seconds = 0;
};

Climb plan_climb(const inference::InferenceInfo& entry, const ApproximationSetting& s, Index rows,
                 Index before) {
  Climb out;
  // No choice may depend on how quick this machine is.
  auto nominal = setting_of(s, rows);
  nominal.speed = inference::nominal_speeds(s.problem.kernel, s.rows.x.cols());
  out.levels = training::approximation_levels(entry, nominal, before);
  const Index p = s.problem.log_parameters().size();
  for (const Index level : out.levels) {
    auto fewer = setting_of(s, level);
    if (fewer.blocks) fewer.blocks = training::level_blocks(*fewer.blocks, level, rows);
    out.seconds += training::usual_evaluations(level, rows, p, true) * entry.cost(fewer).seconds;
  }
  out.seconds += training::usual_evaluations(rows, rows, p, !out.levels.empty()) *
                 cost_of(entry, s, rows).seconds;
  return out;
}

// "vfe, 1,000 base points", "bcm, blocks of about 1,000 rows".
std::string words_of(const inference::InferenceInfo& entry, const inference::SparseSetup& sparse,
                     Index rows) {
  std::string text(entry.name);
  if (entry.abilities.base)
    text += fmt::format(", {} base points",
                        count_text(inference::base_count(rows, cut_to(sparse, rows))));
  if (entry.abilities.blocks && sparse.blocks)
    text += fmt::format(", {}", plural(*sparse.blocks, "block"));
  return text;
}

std::string note_of(const inference::InferenceInfo& entry) {
  using inference::EvidenceKind;
  return entry.abilities.kind == EvidenceKind::bound
             ? "approximate; its evidence is a lower bound of the exact one"
             : "approximate";
}

// Choosing base points, once: a randomly pivoted factorisation (or kmeans, which takes about as
// long) of as many columns, among the rows that its array has room for.
double choosing_seconds(const inference::InferenceInfo& entry, const ApproximationSetting& s,
                        Index rows) {
  if (!entry.abilities.base || s.sparse.points.size() > 0 || s.sparse.base == "random") return 0;
  const auto m = static_cast<double>(inference::base_count(rows, cut_to(s.sparse, rows)));
  const double n = std::min(static_cast<double>(rows), std::max(kMostChosenFrom / m, 4 * m));
  return n * m * m / s.plan.calibration.flops + n * m * s.plan.calibration.pair_seconds_double;
}

PlanRow row_of(const inference::InferenceInfo& entry, const ApproximationSetting& s,
               const char* stage, Index rows) {
  const auto cost = cost_of(entry, s, rows);
  PlanRow row;
  row.stage = stage;
  row.method = words_of(entry, s.sparse, rows);
  row.bytes = cost.bytes;
  row.seconds = cost.seconds;
  row.note = note_of(entry);
  row.fits = s.plan.base_bytes + row.bytes <= s.plan.budget_bytes;
  return row;
}

// The trainer that climbs the evidence of an approximation: L-BFGS unless the user asks for steps
// of another kind. Throws InvalidArgument for those that need what an approximation has not.
std::string trainer_of(const TrainOptions& train) {
  std::string lbfgs(training::exact_trainer().name);
  if (train.train == "auto") return lbfgs;
  const auto& asked = training::trainers().find(train.train);
  if (asked.also_exact) return lbfgs;
  if (asked.from_start_values) return std::string(asked.name);
  throw InvalidArgument(fmt::format(
      "`train={}` follows gradients by solves or the Vecchia likelihood of the exact process; an "
      "approximation has a value and an exact gradient of its own: leave `train` out",
      asked.name));
}

// "13,992, 55,968 and ", before the number of all rows.
std::string levels_text(const std::vector<Index>& levels) {
  std::string text;
  for (const Index level : levels)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", count_text(level));
  return text.empty() ? text : text + " and ";
}

void plan_learning(const inference::InferenceInfo& entry, const ApproximationSetting& s,
                   double noise, const MethodOptions& method, const TrainOptions& train,
                   bool moves_base, Plan& plan) {
  const Index n = s.rows.size();
  plan.trains = true;
  plan.train_method = trainer_of(train);
  plan.train_rows = std::min(n, train.subset.value_or(n));
  const auto& trainer = training::trainers().find(plan.train_method);
  plan.train_by_solves = trainer.by_solves;
  StartLevels start;
  if (!trainer.from_start_values)
    start = plan_start(s.problem, noise, s.rows, method, train, plan.train_rows, plan);
  plan.train_levels = start.levels;
  plan.start_rows = start.levels.empty() ? 0 : start.levels.back();
  auto row = row_of(entry, s, "train", plan.train_rows);
  const double one = row.seconds;
  row.note = fmt::format("{}, {:.2g} s a gradient", row.note, one);
  if (trainer.gradients != nullptr) {
    row.seconds = trainer.gradients(s.problem, train) * one;
  } else {
    auto climb = plan_climb(entry, s, plan.train_rows, plan.start_rows);
    plan.solve_levels = std::move(climb.levels);
    row.seconds = climb.seconds;
  }
  if (moves_base) row.seconds += kUsualBaseEvaluations * one;
  row.seconds += start.seconds + choosing_seconds(entry, s, plan.train_rows);
  row.bytes = std::max(row.bytes, start.bytes);
  row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
  row.chosen = row.fits;
  plan.rows.push_back(row);
  if (!row.fits) refuse(plan, {row}, "learning", method);
  plan.seconds += row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + row.bytes);
  plan.reason += fmt::format(
      "Hyperparameters are learned {}on {}{} {} rows by {} on the evidence of {}. ",
      start.levels.empty()
          ? ""
          : fmt::format("on {} rows by Cholesky, then ", count_text(start.levels.back())),
      levels_text(plan.solve_levels),
      plan.train_rows < n ? "random"
      : plan.streamed     ? "the"
                          : "all",
      count_text(plan.train_rows), trainer.from_start_values ? trainer.name : "L-BFGS", entry.name);
}

}  // namespace

void list_approximations(const inference::Problem& problem, const inference::Observations& rows,
                         const TrainOptions& train, Plan& plan) {
  const inference::SparseSetup defaults;
  const ApproximationSetting s{problem, rows, defaults, plan};
  std::vector<PlanRow> table;
  for (const auto& entry : inference::methods()) {
    if (!entry.abilities.approximate || !entry.refusal(problem, rows).empty()) continue;
    table.push_back(row_of(entry, s, "instead", rows.size()));
    if (train.train != "none") table.back().seconds += plan_climb(entry, s, rows.size(), 0).seconds;
    table.back().seconds += choosing_seconds(entry, s, rows.size());
  }
  plan.rows.insert(plan.rows.end(), table.begin(), table.end());
}

namespace {

// What the user asks of the approximation, checked against learning; fills sparse, moves_base and
// the name.
const inference::InferenceInfo& begin_approximation(const inference::Problem& problem,
                                                    const inference::Observations& rows,
                                                    const MethodOptions& method,
                                                    const TrainOptions& train,
                                                    const ApproximationOptions& approximation,
                                                    Plan& plan) {
  const auto& entry = inference::methods().find(approximation.method);
  if (const auto why = entry.refusal(problem, rows); !why.empty())
    throw InvalidArgument(fmt::format("`method={}`: {}", entry.name, why));
  plan.sparse = sparse_setup(approximation, method, rows.size());
  plan.moves_base = approximation.optimize_base;
  plan.inference = entry.name;
  plan.approximate = true;
  if (approximation.optimize_base && train.train == "none")
    throw InvalidArgument(
        "`optimize_base` moves base points while hyperparameters are learned; `train=none` learns "
        "nothing");
  if (approximation.optimize_base && training::trainers().contains(train.train) &&
      training::trainers().find(train.train).by_solves &&
      !training::trainers().find(train.train).also_exact)
    throw InvalidArgument(
        fmt::format("`optimize_base` climbs evidences by L-BFGS, which `train={}` does not; leave "
                    "one of them out",
                    train.train));
  if (approximation.optimize_base && train.subset)
    throw InvalidArgument(
        "`optimize_base` climbs the evidence of all rows; leave it or `subset` out");
  return entry;
}

void take_row(PlanRow row, const char* what, const MethodOptions& method, Plan& plan) {
  row.chosen = row.fits;
  plan.rows.push_back(row);
  if (!row.fits) refuse(plan, {row}, what, method);
  plan.seconds += row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + row.bytes);
}

// Of an evaluation with its gradient, what the value takes.
constexpr double kShareOfValue = 0.35;
// Sums that are kept of passes, and those at work.
constexpr double kKeptSums = 3;

// Passes over all rows that learning and the posterior take together: a value each, and gradients.
struct Passes {
  int values = 1, gradients = 0;
  int count() const { return values + gradients; }
};

PlanRow stream_row(const inference::InferenceInfo& entry, const ApproximationSetting& s,
                   const StreamSetting& stream, const Passes& most) {
  const Index m = inference::base_count(s.rows.size(), cut_to(s.sparse, s.rows.size()));
  auto sparse = s.sparse;
  sparse.rank = m;  // of the sample, whatever the number of rows
  const ApproximationSetting all{s.problem, s.rows, sparse, s.plan};
  const auto whole = cost_of(entry, all, stream.rows);
  const auto block = cost_of(entry, all, std::min(stream.rows, std::max<Index>(m, 4096)));
  PlanRow row;
  row.stage = "passes";
  row.method = words_of(entry, s.sparse, s.rows.size());
  row.bytes = block.bytes + 8 * kKeptSums * static_cast<double>(m * m);
  const double values = kShareOfValue * whole.seconds, gradient = whole.seconds - values;
  row.seconds = most.values * values + most.gradients * gradient;
  // Blocks are read beside the arithmetic; what takes longer counts.
  row.seconds = std::max(row.seconds, most.count() * stream.read_seconds);
  row.note =
      fmt::format("{}, {} over all rows, {:.2g} s each to read", note_of(entry),
                  most.count() == 1 ? "one pass" : fmt::format("at most {} passes", most.count()),
                  stream.read_seconds);
  row.fits = s.plan.base_bytes + row.bytes <= s.plan.budget_bytes;
  return row;
}

}  // namespace

void plan_approximation(const inference::Problem& problem, double noise,
                        const inference::Observations& rows, const MethodOptions& method,
                        const TrainOptions& train, const ApproximationOptions& approximation,
                        Plan& plan) {
  const auto& entry = begin_approximation(problem, rows, method, train, approximation, plan);
  const ApproximationSetting s{problem, rows, plan.sparse, plan};
  const auto plain = without_base(method);
  if (train.train != "none")
    plan_learning(entry, s, noise, plain, train, approximation.optimize_base, plan);
  auto row = row_of(entry, s, "solve", rows.size());
  if (train.train == "none") row.seconds += choosing_seconds(entry, s, rows.size());
  take_row(row, "the posterior", plain, plan);
  plan.reason +=
      fmt::format("The posterior is that of {}, an approximation of the exact one.", row.method);
}

void plan_stream(const inference::Problem& problem, double noise,
                 const inference::Observations& sample, const MethodOptions& method,
                 const TrainOptions& train, const ApproximationOptions& approximation,
                 const StreamSetting& stream, Plan& plan) {
  const auto& entry = begin_approximation(problem, sample, method, train, approximation, plan);
  const Index n = sample.size();
  plan.streamed = true;
  plan.reservoir = n;
  plan.n = stream.rows;
  plan.base_bytes += stream_bytes(sample.x.cols());
  if (!method.memory) plan.budget_bytes += stream_bytes(sample.x.cols());
  plan.peak_bytes = plan.base_bytes;
  plan.reason =
      fmt::format("The {} rows are read in passes; {} in memory. ", count_text(stream.rows),
                  n == stream.rows ? std::string("all of them also are")
                                   : fmt::format("{} random ones are", count_text(n)));
  const ApproximationSetting s{problem, sample, plan.sparse, plan};
  const auto plain = without_base(method);
  const bool learns = train.train != "none", more = n < stream.rows;
  if (learns) plan_learning(entry, s, noise, plain, train, approximation.optimize_base, plan);
  Passes most, least;
  if (learns && more) {
    most = {.values = 1 + stream.gradients, .gradients = stream.gradients};
    least = {.values = 1, .gradients = 1};
    plan.reason += fmt::format(
        "Then at most {} of its evidence over all rows decide, in steps that count only when it "
        "grows. ",
        plural(stream.gradients, "gradient"));
  }
  plan.passes = 1 + least.count();
  plan.most_passes = 1 + most.count();
  take_row(stream_row(entry, s, stream, most), "passes over all rows", plain, plan);
  plan.seconds += stream.read_seconds;  // the survey
  plan.reason += fmt::format(
      "The posterior is that of {}, an approximation of the exact one, from the sums of the last "
      "pass.",
      plan.rows.back().method);
}

}  // namespace mercer::planning
