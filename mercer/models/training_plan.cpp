#include "mercer/models/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/exact_evidence.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/models/full_training.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::models {
namespace {

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
  if (p.method.op != "auto") choice.op = p.method.op;
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
    const auto op_bytes = [&](const operators::OperatorInfo& op, operators::Precision precision) {
      return op.bytes(rows, p.d, columns, precision);
    };
    bytes += 2 * (op_bytes(operators::default_operator(), operators::Precision::float64) +
                  op_bytes(operators::operators().find(choice.op),
                           inference::product_precision(choice.precision))) +
             cost.peak_bytes + krylov::solver(choice.solver).bytes(rows, columns, true) +
             8 * n * static_cast<double>(columns) * 8;
    if (choice.preconditioner != "auto" && choice.preconditioner != "none")
      bytes += preconditioners::preconditioner(choice.preconditioner)
                   .cost(rows, p.d, choice.preconditioning)
                   .peak_bytes;
  }
  row.bytes = std::max(small, bytes);
  return row;
}

// By Cholesky, on so many rows.
PlanRow exact_row(const Learning& p, const TrainOptions& train, Index rows,
                  const std::string& which) {
  PlanRow row;
  row.stage = "train";
  row.method = fmt::format("exact likelihood, {}", which);
  row.bytes = inference::exact_evidence_bytes(rows);
  const double starts = 1 + train.restarts;
  row.seconds = start_rows_for(rows) > 0
                    ? starts * kEvaluationsFromScratch * gradient_seconds(p, kStartRows) +
                          kEvaluationsFromGoodStart * gradient_seconds(p, rows)
                    : starts * kEvaluationsFromScratch * gradient_seconds(p, rows);
  row.note = fmt::format("{:.2g} s a gradient", gradient_seconds(p, rows));
  return row;
}

// What is learned by solves when nothing is asked for: exact gradients where they do not take long.
std::string method_by_solves(const Learning& p, const TrainOptions& train,
                             const SystemChoice& system, Index rows) {
  if (train.train != "auto") return train.train;
  const auto usual = solves_row(p.at_nominal_speed(), train, system, rows, "lbfgs");
  return usual.seconds > kLongestLearning ? "vecchia" : "lbfgs";
}

// Rows that a factorisation has memory for, at most so many.
Index rows_that_fit(const Plan& plan, Index most) {
  const double affordable = std::sqrt(std::max(0.0, plan.budget_bytes - plan.base_bytes) / 8);
  return std::min(most,
                  std::clamp(static_cast<Index>(affordable * 0.95), kLeastSubset, kDefaultSubset));
}

// The ways there are: exact on the rows asked for; by solves on them; exact on as many as fit.
struct Ways {
  Index rows = 0, fewer = 0;
  std::string of_rows;  // "all 300 rows"
  std::string method;   // of the solves
  SystemChoice system;
  PlanRow exact, solves, subset;
};

Ways find_ways(const Learning& p, const TrainOptions& train, const Plan& plan) {
  Ways w;
  w.rows = std::min(p.n, train.subset.value_or(p.n));
  w.of_rows = fmt::format("{} {} rows", w.rows == p.n ? "all" : "random", w.rows);
  w.system = learning_system(p);
  w.method = method_by_solves(p, train, w.system, w.rows);
  w.fewer = rows_that_fit(plan, w.rows);
  w.exact = exact_row(p, train, w.rows, w.of_rows);
  w.solves = solves_row(p, train, w.system, w.rows, w.method);
  w.subset = exact_row(p, train, w.fewer, fmt::format("random {} rows", w.fewer));
  for (PlanRow* row : {&w.exact, &w.solves, &w.subset})
    row->fits = plan.base_bytes + row->bytes <= plan.budget_bytes;
  // With "auto" the rank is what a hybrid may have beside the rest; 0: none is built.
  if (w.system.preconditioner == "auto")
    w.system.preconditioning.rank = inference::affordable_rank(
        w.rows, p.d, w.system.preconditioning.rank.value_or(inference::kAdaptiveMaxRank),
        plan.budget_bytes - plan.base_bytes - w.solves.bytes);
  return w;
}

void take_exact(const Ways& w, Plan& plan) {
  plan.train_rows = w.rows;
  plan.start_rows = start_rows_for(w.rows);
  plan.reason += fmt::format("Hyperparameters are learned on {} (exact likelihood). ", w.of_rows);
}

void take_solves(const Ways& w, Plan& plan) {
  const bool surrogate_only = w.method == "vecchia";
  plan.train_rows = w.rows;
  plan.train_method = w.method;
  plan.train_system = w.system;
  // A surrogate has nothing to add to an exact optimum of the same rows.
  const bool from_start_values =
      is_descent(w.method) || (surrogate_only && w.rows <= kSubsetBeforeSolves);
  plan.start_rows = from_start_values ? 0 : std::min(w.rows, kSubsetBeforeSolves);
  const char* how = surrogate_only ? "the Vecchia likelihood" : "exact gradients from solves";
  plan.reason +=
      plan.start_rows > 0
          ? fmt::format("Hyperparameters are learned on {} rows by Cholesky, then on {} by {}. ",
                        plan.start_rows, w.of_rows, how)
          : fmt::format("Hyperparameters are learned on {} by {}. ", w.of_rows, how);
}

void take_subset(const Ways& w, Plan& plan) {
  plan.train_rows = w.fewer;
  plan.start_rows = start_rows_for(w.fewer);
  plan.reason += fmt::format(
      "Hyperparameters are learned on {} random rows, because more do not fit into memory. ",
      w.fewer);
}

}  // namespace

void plan_training(const kernels::Kernel& kernel, const MethodOptions& method,
                   const TrainOptions& train, Plan& plan) {
  if (train.train == "newton")
    throw InvalidArgument(
        "--train newton is for classes, counts and outliers; with Gaussian noise --train lbfgs "
        "does better: it corrects the Vecchia likelihood by exact gradients");
  auto w = find_ways({kernel, method, plan.n, plan.d, plan.calibration}, train, plan);
  const bool exact_allowed = train.train == "auto" || train.train == "lbfgs";
  // Above a few thousand rows, five gradients by solves take less than sixty by Cholesky.
  const bool exact_pays = w.rows <= kAlwaysDirect || method.solver == "cholesky";
  PlanRow* chosen = nullptr;
  if (exact_allowed && exact_pays && w.exact.fits) {
    chosen = &w.exact;
    take_exact(w, plan);
  } else if (w.solves.fits) {
    chosen = &w.solves;
    take_solves(w, plan);
  } else if (exact_allowed && w.subset.fits) {
    chosen = &w.subset;
    take_subset(w, plan);
  }
  if (chosen != nullptr) chosen->chosen = true;
  std::vector<PlanRow> rows;
  if (exact_allowed) rows.push_back(w.exact);
  rows.push_back(w.solves);
  if (exact_allowed && w.fewer < w.rows) rows.push_back(w.subset);
  if (chosen == nullptr) refuse(plan, rows, "learning", method);
  plan.seconds += chosen->seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + chosen->bytes);
  plan.trains = true;
  plan.rows.insert(plan.rows.end(), rows.begin(), rows.end());
}

}  // namespace mercer::models
