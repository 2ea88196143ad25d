#include "mercer/planning/approximation_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/planning/training_plan.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

// Evaluations of the evidence with its gradient that a climb usually takes, and with the base
// points moving.
constexpr double kUsualEvaluations = 25, kUsualBaseEvaluations = 50;

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

inference::EvaluationCost cost_of(const inference::InferenceInfo& entry,
                                  const ApproximationSetting& s, Index rows) {
  const Index d = s.rows.x.cols();
  return entry.cost({.n = rows,
                     .d = d,
                     .functions = {s.rows.functions(), s.problem.likelihood->coupled() != nullptr},
                     .columns = 1 + inference::mean_basis_size(s.problem.mean, d),
                     .parameters = s.problem.kernel.num_parameters(),
                     .speed = s.plan.calibration,
                     .rank = inference::base_count(rows, cut_to(s.sparse, rows)),
                     .blocks = s.sparse.blocks});
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

PlanRow row_of(const inference::InferenceInfo& entry, const ApproximationSetting& s,
               const char* stage, Index rows, double evaluations) {
  const auto cost = cost_of(entry, s, rows);
  PlanRow row;
  row.stage = stage;
  row.method = words_of(entry, s.sparse, rows);
  row.bytes = cost.bytes;
  row.seconds = evaluations * cost.seconds;
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
  double evaluations =
      trainer.gradients != nullptr ? trainer.gradients(s.problem, train) : kUsualEvaluations;
  if (moves_base) evaluations += kUsualBaseEvaluations;
  auto row = row_of(entry, s, "train", plan.train_rows, evaluations);
  row.note = fmt::format("{}, {:.2g} s a gradient", row.note, row.seconds / evaluations);
  row.seconds += start.seconds;
  row.bytes = std::max(row.bytes, start.bytes);
  row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
  row.chosen = row.fits;
  plan.rows.push_back(row);
  if (!row.fits) refuse(plan, {row}, "learning", method);
  plan.seconds += row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + row.bytes);
  plan.reason += fmt::format(
      "Hyperparameters are learned {}on {} {} rows by {} on the evidence of {}. ",
      start.levels.empty()
          ? ""
          : fmt::format("on {} rows by Cholesky, then ", count_text(start.levels.back())),
      plan.train_rows == n ? "all" : "random", count_text(plan.train_rows),
      trainer.from_start_values ? trainer.name : "L-BFGS", entry.name);
}

}  // namespace

void list_approximations(const inference::Problem& problem, const inference::Observations& rows,
                         const TrainOptions& train, Plan& plan) {
  const inference::SparseSetup defaults;
  const ApproximationSetting s{problem, rows, defaults, plan};
  std::vector<PlanRow> table;
  for (const auto& entry : inference::methods()) {
    if (!entry.abilities.approximate || !entry.refusal(problem, rows).empty()) continue;
    const double evaluations = train.train == "none" ? 1 : 1 + kUsualEvaluations;
    table.push_back(row_of(entry, s, "instead", rows.size(), evaluations));
  }
  plan.rows.insert(plan.rows.end(), table.begin(), table.end());
}

void plan_approximation(const inference::Problem& problem, double noise,
                        const inference::Observations& rows, const MethodOptions& method,
                        const TrainOptions& train, const ApproximationOptions& approximation,
                        Plan& plan) {
  const auto& entry = inference::methods().find(approximation.method);
  if (const auto why = entry.refusal(problem, rows); !why.empty())
    throw InvalidArgument(fmt::format("`method={}`: {}", entry.name, why));
  const Index n = rows.size();
  plan.sparse = sparse_setup(approximation, method, n);
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
  const ApproximationSetting s{problem, rows, plan.sparse, plan};
  const auto plain = without_base(method);
  if (train.train != "none")
    plan_learning(entry, s, noise, plain, train, approximation.optimize_base, plan);
  auto row = row_of(entry, s, "solve", n, 1);
  row.chosen = row.fits;
  plan.rows.push_back(row);
  if (!row.fits) refuse(plan, {row}, "the posterior", plain);
  plan.seconds += row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + row.bytes);
  plan.reason +=
      fmt::format("The posterior is that of {}, an approximation of the exact one.", row.method);
}

}  // namespace mercer::planning
