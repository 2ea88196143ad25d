#include "mercer/planning/laplace_system_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/laplace/curved_operator.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"

namespace mercer::planning {
namespace {

// A low-rank preconditioner of fewer columns than this is not worth having.
constexpr Index kLeastRank = 20;
// Products of a mode and its gradients, for the choice of an operator.
constexpr double kProductsPerStep = 40;

// Blocks of vectors that an iterative run has at once: the latent functions times the probes;
// coupled ones have copies on both sides of the root and of the preconditioner.
double vector_bytes(Index n, inference::FunctionCount functions, Index probes) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(functions.count) *
         static_cast<double>(probes + 1) * (functions.coupled ? 18 : 10);
}

// F, and U of every function; coupled: F, a weighted copy and the matrix of all their columns.
double low_rank_bytes(Index n, inference::FunctionCount functions, Index rank) {
  const auto columns = static_cast<double>(rank) * static_cast<double>(functions.count);
  return 8.0 * static_cast<double>(n) * static_cast<double>(rank) *
             static_cast<double>(functions.coupled ? 3 : functions.count + 2) +
         (functions.coupled ? 8.0 * columns * columns : 0.0);
}

[[noreturn]] void refuse_memory(const Plan& plan, const std::string& what, double bytes,
                                const std::string& instead) {
  const double all = plan.base_bytes + bytes;
  throw DoesNotFit(
      fmt::format("{} needs {}, more than the {} there are; {}`memory={:.0f}M` would do", what,
                  format_bytes(all), format_bytes(plan.budget_bytes), instead,
                  std::ceil(all * 1.05 / 1048576)));
}

class LaplacePlanner {
 public:
  LaplacePlanner(const inference::Problem& problem, double noise,
                 const inference::Observations& rows, const MethodOptions& method,
                 const LearningNeeds& learning)
      : kernel_(problem.kernel),
        noise_(noise),
        x_(rows.x),
        n_(rows.size()),
        functions_{rows.functions(), problem.likelihood->coupled() != nullptr},
        trend_(inference::mean_basis_size(inference::mean_kind(method.mean), x_.cols())),
        method_(method),
        probes_(learning.probes),
        needs_solves_(learning.by_solves) {}

  Plan run();

 private:
  bool fits(double bytes) const { return plan_.base_bytes + bytes <= plan_.budget_bytes; }
  void need(double bytes) {
    plan_.peak_bytes = std::max(plan_.peak_bytes, plan_.base_bytes + bytes);
  }
  Plan plan_with(const std::string& solver, const std::string& op) const {
    auto method = method_;
    method.solver = solver;
    method.op = op;
    return make_plan(kernel_, noise_, x_, method, PlanFor::solve);
  }
  Plan plan_with(const std::string& solver) const { return plan_with(solver, method_.op); }
  void take_operator_that_pays();
  void plan_solve();
  void bound_rank(inference::SystemChoice& choice);

  const kernels::Kernel& kernel_;
  double noise_;
  const Matrix& x_;
  Index n_;
  inference::FunctionCount functions_;
  Index trend_;  // columns of the mean, solved for beside the rest
  const MethodOptions& method_;
  Index probes_;       // right-hand sides of learning, for every function
  bool needs_solves_;  // learning goes by solves
  Plan plan_;
};

// How the mode is found: by Cholesky where all its matrices fit and N is small.
void LaplacePlanner::plan_solve() {
  plan_ = plan_with(method_.solver == "kcg" ? "cg" : method_.solver);
  const double dense = inference::exact_laplace_bytes(n_, functions_);
  if (plan_.system.solver == "cholesky" && method_.solver == "auto" &&
      (n_ > kAlwaysDirect || !fits(dense)))
    plan_ = plan_with("cg");
  if (plan_.system.solver == "cholesky") {
    if (!fits(dense))
      refuse_memory(plan_, "a factorisation for every class", dense, "`solver=cg` or ");
    need(dense);
  } else {
    take_operator_that_pays();
    bound_rank(plan_.system);
  }
  plan_.train_system = plan_.system;
  if (method_.solver == "kcg") {  // finds the mode; whatever else is to be solved is for cg
    plan_.system.solver = "kcg";
    plan_.system.precision = inference::SolvePrecision::float64;
    plan_.reason = "The mode is found by kernel conjugate gradients, as asked for.";
  }
}

// Newton's method multiplies with K again and again, for all functions: an operator that costs more
// to build pays sooner than a plan for one solve knows.
void LaplacePlanner::take_operator_that_pays() {
  if (method_.op != "auto") return;
  const auto speed = inference::nominal_speeds(kernel_, x_.cols());
  const auto precision = plan_.system.precision;
  const auto build = [&](std::string_view op) {
    return inference::operator_build_seconds(speed, n_, op, precision);
  };
  const auto seconds = [&](std::string_view op) {
    return build(op) + kProductsPerStep *
                           inference::product_seconds(speed, n_, op, precision, functions_.count);
  };
  const double rest =
      vector_bytes(n_, functions_, trend_ + probes_) +
      low_rank_bytes(n_, functions_,
                     inference::laplace_rank(n_, method_.preconditioning.rank.value_or(1000)));
  for (const auto& op : operators::operators()) {
    if (build(op.name) <= build(plan_.system.op) || !op.automatic.allowed ||
        !operators::refusal(op, kernel_, n_, x_.cols()).empty() ||
        op.automatic.least_gain * seconds(op.name) > seconds(plan_.system.op))
      continue;
    const double bytes =
        inference::operator_bytes(n_, x_.cols(), functions_.count, op.name, precision);
    if (bytes > op.automatic.most_bytes || !fits(bytes + rest)) continue;
    const auto with = plan_with(plan_.system.solver, std::string(op.name));
    const auto chosen = std::find_if(with.rows.begin(), with.rows.end(),
                                     [](const PlanRow& row) { return row.chosen; });
    if (with.system.op != op.name || chosen == with.rows.end()) continue;
    for (auto& row : plan_.rows) row.chosen = row.method == chosen->method;
    plan_.system = with.system;
    plan_.seconds = with.seconds;
    plan_.peak_bytes = std::max(plan_.peak_bytes, with.peak_bytes);
    plan_.reason = fmt::format(
        "The run solves by {}: quickest, as K is multiplied with again and again.", chosen->method);
  }
}

// The rank that fits beside the vectors of all functions.
void LaplacePlanner::bound_rank(inference::SystemChoice& choice) {
  double vectors = vector_bytes(n_, functions_, trend_ + probes_);
  vectors +=
      inference::operator_bytes(n_, x_.cols(), functions_.count, choice.op, choice.precision);
  if (!fits(vectors)) refuse_memory(plan_, "a block of vectors for every class", vectors, "");
  need(vectors);
  if (choice.preconditioner != "auto") return;
  const double left = plan_.budget_bytes - plan_.base_bytes - vectors;
  Index rank = inference::laplace_rank(n_, choice.preconditioning.rank.value_or(1000));
  if (functions_.coupled) rank = inference::CoupledLowRank::rank_for(functions_.count, rank);
  // Bytes of coupled functions grow with the square of the rank.
  while (rank >= kLeastRank && low_rank_bytes(n_, functions_, rank) > left) --rank;
  if (rank < kLeastRank) {
    choice.preconditioner = "none";
    choice.preconditioning.rank.reset();
    plan_.reason += " Without a preconditioner: none of a useful rank is affordable.";
    return;
  }
  choice.preconditioning.rank = rank;
  need(vectors + low_rank_bytes(n_, functions_, rank));
}

Plan LaplacePlanner::run() {
  plan_solve();
  // By solves even where the mode is found by factorisations.
  if (plan_.train_system.solver == "cholesky" && needs_solves_) {
    plan_.train_system = plan_with("cg").system;
    bound_rank(plan_.train_system);
  }
  return std::move(plan_);
}

}  // namespace

Plan plan_laplace_system(const inference::Problem& problem, double noise,
                         const inference::Observations& rows, const MethodOptions& method,
                         const LearningNeeds& learning) {
  return LaplacePlanner(problem, noise, rows, method, learning).run();
}

}  // namespace mercer::planning
