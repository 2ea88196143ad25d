#include "mercer/models/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/exact_evidence.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/models/full_training.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::models {
namespace {

using inference::OperatorKind;
using inference::SolvePrecision;
using inference::SystemChoice;

constexpr Index kDefaultSubset = 4000;
constexpr Index kStartRows = 750;
// Before learning on all rows by solves: exact steps on this many, from several starts.
constexpr Index kSubsetBeforeSolves = 1000;
// What learning by solves typically takes: exact gradients, each with so many iterations and
// passes over the tiles with derivatives; evaluations of the surrogate; steps of Adam.
constexpr double kExactGradients = 5, kLearningIterations = 10, kDerivativePasses = 3;
constexpr double kSurrogateEvaluations = 60;
// Exact gradients that would take longer than this in all are left to the surrogate.
constexpr double kLongestLearning = 3600;
// Hyperparameters learned on fewer rows than this are not worth having.
constexpr Index kLeastSubset = 100;
// Evaluations that L-BFGS typically needs from the start values, and from a good start.
constexpr double kEvaluationsFromScratch = 60;
constexpr double kEvaluationsFromGoodStart = 20;

// What the estimates depend on.
struct Learning {
  const kernels::Kernel& kernel;
  const MethodOptions& method;
  Index n, d;
  inference::Speeds speed;
  Learning at_nominal_speed() const {
    return {kernel, method, n, d, inference::nominal_speeds(kernel, d)};
  }
  /// Right-hand sides besides the probes.
  Index columns() const {
    return 1 + inference::mean_basis_size(inference::mean_kind(method.mean), d);
  }
};

// Rows of a multi-start before a search on so many; 0: not worth it.
Index start_rows_for(Index rows) { return rows > kStartRows + kStartRows / 3 ? kStartRows : 0; }

double gradient_seconds(const Learning& p, Index rows) {
  const auto m = static_cast<double>(rows);
  const auto parameters = static_cast<double>(p.kernel.num_parameters());
  return inference::exact_evidence_flops(rows, true) / p.speed.flops +
         m * m * p.speed.pair_seconds_double * (2 + parameters / 2);
}

// The solves of learning: as the user asks, else conjugate gradients with float32 products.
SystemChoice learning_system(const Learning& p) {
  SystemChoice choice;
  choice.preconditioner = p.method.preconditioner;
  choice.preconditioning = preconditioning_for(choice.preconditioner, p.method);
  choice.solver = iterative_solver(p.method.solver, choice.preconditioner);
  choice.precision = p.method.precision == "double"   ? SolvePrecision::float64
                     : p.method.precision == "single" ? SolvePrecision::float32
                                                      : SolvePrecision::mixed;
  choice.op = p.method.op == "stored" ? OperatorKind::stored : OperatorKind::tiled;
  choice.max_iterations = p.method.max_iterations;
  return choice;
}

PlanRow solves_row(const Learning& p, const TrainOptions& train, const SystemChoice& choice,
                   Index rows, const std::string& method) {
  const auto n = static_cast<double>(rows);
  const Index columns = p.columns() + train.probes;
  const auto parameters = static_cast<double>(p.kernel.num_parameters());
  const Index m = preconditioners::default_neighbours(rows);
  const Index s = surrogate_neighbours(rows);
  // Values of the kernel with derivatives, one thread's work on small sets counted as pairs.
  const double derivative = p.speed.pair_seconds_double * (2 + parameters / 2);
  const double surrogate = n * static_cast<double>((s + 1) * (s + 1)) * 2 * derivative;
  preconditioners::PreconditionerOptions sparse;
  sparse.neighbours = m;
  const auto cost = preconditioners::preconditioner("vecchia").cost(rows, p.d, sparse);
  const double product =
      inference::product_seconds(p.speed, rows, choice.op, choice.precision, columns);
  const double gradient = inference::build_seconds(p.speed, cost, product) +
                          kLearningIterations * product +
                          kDerivativePasses * 0.5 * n * n * derivative +
                          n * static_cast<double>((m + 1) * (m + 1)) * derivative;
  PlanRow row;
  row.stage = "train";
  row.method =
      fmt::format("{} on {} rows, {}", method, rows,
                  method == "vecchia" ? "Vecchia likelihood" : "exact gradients by solves");
  const bool descent = is_descent(method);
  const double gradients = method == "vecchia" ? 0.0
                           : descent           ? train.steps_or_default()
                                               : kExactGradients;
  const double starts = 1 + train.restarts;
  row.seconds = gradients * gradient;
  if (!descent)
    row.seconds += starts * kEvaluationsFromScratch *
                       gradient_seconds(p, std::min(rows, kSubsetBeforeSolves)) +
                   kSurrogateEvaluations * surrogate;
  row.note = method == "vecchia" ? fmt::format("{:.2g} s an evaluation", surrogate)
                                 : fmt::format("{:.2g} s a gradient", gradient);
  const double small =
      descent ? 0.0 : inference::exact_evidence_bytes(std::min(rows, kSubsetBeforeSolves));
  double bytes = descent ? 0.0 : approximations::VecchiaLikelihood::bytes(rows, p.d, s);
  if (gradients > 0) {
    // One set of operators for the estimate, one that the preconditioner may refer to.
    bytes += 4 * operators::tiled_bytes(rows, p.d, columns) + cost.peak_bytes +
             krylov::solver(choice.solver).bytes(rows, columns, true) +
             8 * n * static_cast<double>(columns) * 8;
    if (choice.op == OperatorKind::stored)
      bytes +=
          2 * operators::StoredOperator::bytes(rows, choice.precision == SolvePrecision::float64
                                                         ? operators::Precision::float64
                                                         : operators::Precision::float32);
    if (choice.preconditioner != "auto" && choice.preconditioner != "none")
      bytes += preconditioners::preconditioner(choice.preconditioner)
                   .cost(rows, p.d, choice.preconditioning)
                   .peak_bytes;
  }
  row.bytes = std::max(small, bytes);
  return row;
}

}  // namespace

void plan_training(const kernels::Kernel& kernel, const MethodOptions& method_options,
                   const TrainOptions& train, Plan& plan) {
  const Learning p{kernel, method_options, plan.n, plan.d, plan.calibration};
  const auto row_for = [&](Index rows, const std::string& name) {
    PlanRow row;
    row.stage = "train";
    row.method = name;
    row.bytes = inference::exact_evidence_bytes(rows);
    const double starts = 1 + train.restarts;
    row.seconds = start_rows_for(rows) > 0
                      ? starts * kEvaluationsFromScratch * gradient_seconds(p, kStartRows) +
                            kEvaluationsFromGoodStart * gradient_seconds(p, rows)
                      : starts * kEvaluationsFromScratch * gradient_seconds(p, rows);
    row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
    row.note = fmt::format("{:.2g} s a gradient", gradient_seconds(p, rows));
    return row;
  };
  const Index rows = std::min(p.n, train.subset.value_or(p.n));
  const std::string of_rows =
      rows == p.n ? fmt::format("all {} rows", rows) : fmt::format("random {} rows", rows);
  // Exact on the rows asked for; by solves on them; exact on as many as fit.
  PlanRow exact = row_for(rows, "exact likelihood, " + of_rows);
  SystemChoice system = learning_system(p);
  std::string method = train.train == "auto" ? "lbfgs" : train.train;
  PlanRow solves = solves_row(p, train, system, rows, method);
  if (train.train == "auto" &&
      solves_row(p.at_nominal_speed(), train, system, rows, method).seconds > kLongestLearning) {
    method = "vecchia";
    solves = solves_row(p, train, system, rows, method);
  }
  solves.fits = plan.base_bytes + solves.bytes <= plan.budget_bytes;
  // With "auto" the rank is what a hybrid may have beside the rest; 0: none is built.
  if (system.preconditioner == "auto")
    system.preconditioning.rank = inference::affordable_rank(
        rows, p.d, system.preconditioning.rank.value_or(inference::kAdaptiveMaxRank),
        plan.budget_bytes - plan.base_bytes - solves.bytes);
  const double affordable = std::sqrt(std::max(0.0, plan.budget_bytes - plan.base_bytes) / 8);
  const Index fewer = std::min(
      rows, std::clamp(static_cast<Index>(affordable * 0.95), kLeastSubset, kDefaultSubset));
  PlanRow subset = row_for(fewer, fmt::format("exact likelihood, random {} rows", fewer));
  const bool exact_allowed = train.train == "auto" || train.train == "lbfgs";
  // Above a few thousand rows, five gradients by solves take less than sixty by Cholesky.
  const bool exact_pays = rows <= kAlwaysDirect || method_options.solver == "cholesky";
  std::vector<PlanRow> rows_here;
  if (exact_allowed) rows_here.push_back(exact);
  rows_here.push_back(solves);
  if (exact_allowed && fewer < rows) rows_here.push_back(subset);
  std::size_t chosen = 0;
  plan.train_rows = rows;
  if (exact_allowed && exact_pays && exact.fits) {
    plan.start_rows = start_rows_for(rows);
    plan.reason += fmt::format("Hyperparameters are learned on {} (exact likelihood). ", of_rows);
  } else if (solves.fits) {
    chosen = exact_allowed ? 1 : 0;
    plan.train_method = method;
    plan.train_system = system;
    const std::string how =
        method == "vecchia" ? "the Vecchia likelihood" : "exact gradients from solves";
    // A surrogate has nothing to add to an exact optimum of the same rows.
    const bool from_start_values =
        is_descent(method) || (method == "vecchia" && rows <= kSubsetBeforeSolves);
    plan.start_rows = from_start_values ? 0 : std::min(rows, kSubsetBeforeSolves);
    plan.reason +=
        plan.start_rows > 0
            ? fmt::format("Hyperparameters are learned on {} rows by Cholesky, then on {} by {}. ",
                          plan.start_rows, of_rows, how)
            : fmt::format("Hyperparameters are learned on {} by {}. ", of_rows, how);
  } else if (exact_allowed && subset.fits) {
    chosen = rows_here.size() - 1;
    plan.train_rows = fewer;
    plan.start_rows = start_rows_for(fewer);
    plan.reason += fmt::format(
        "Hyperparameters are learned on {} random rows, because more do not fit into memory. ",
        fewer);
  } else {
    refuse(plan, rows_here, "learning", p.method);
  }
  rows_here[chosen].chosen = true;
  plan.seconds += rows_here[chosen].seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + rows_here[chosen].bytes);
  plan.trains = true;
  plan.rows.insert(plan.rows.end(), rows_here.begin(), rows_here.end());
}

}  // namespace mercer::models
