#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/exact_laplace.hpp"
#include "mercer/models/laplace_training.hpp"

namespace mercer::models {
namespace {

// An exact evaluation may take so long by estimate while learning on all rows, and on those that
// learning by solves begins with.
constexpr double kLongEvaluation = 2.0, kShortEvaluation = 0.5;
constexpr Index kMostExactRows = 4000, kLeastStartRows = 100;

// A low-rank preconditioner of fewer columns than this is not worth having.
constexpr Index kLeastRank = 20;
// What learning usually takes: exact evaluations on few rows, on more, products of a step by
// solves, and steps.
constexpr double kFewEvaluations = 40, kEvaluations = 4, kProductsPerStep = 40, kCorrections = 4,
                 kSteps = 40;

// Rows that an exact evaluation of so many functions takes so long for.
Index exact_rows(const inference::Speeds& speed, inference::FunctionCount functions,
                 double seconds) {
  const double per_cube = inference::exact_laplace_flops(1000, functions) / 1e9;
  const double cube = seconds * speed.flops / per_cube;
  return std::clamp<Index>(static_cast<Index>(std::cbrt(cube)), 100, kMostExactRows);
}

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
      fmt::format("{} needs {}, more than the {} there are; {}--memory {:.0f}M would do", what,
                  format_bytes(all), format_bytes(plan.budget_bytes), instead,
                  std::ceil(all * 1.05 / 1048576)));
}

class LaplacePlanner {
 public:
  LaplacePlanner(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
                 inference::FunctionCount functions, const MethodOptions& method,
                 const TrainOptions& train)
      : kernel_(kernel),
        noise_(noise),
        x_(x),
        n_(x.rows()),
        functions_(functions),
        trend_(inference::mean_basis_size(inference::mean_kind(method.mean), x.cols())),
        method_(method),
        train_(train) {}

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
    return make_plan(kernel_, noise_, x_, method, {}, PlanFor::solve);
  }
  Plan plan_with(const std::string& solver) const { return plan_with(solver, method_.op); }
  void store_where_it_pays();
  void plan_solve();
  void bound_rank(inference::SystemChoice& choice);
  void plan_learning();

  const kernels::Kernel& kernel_;
  double noise_;
  ConstMatrixView x_;
  Index n_;
  inference::FunctionCount functions_;
  Index trend_;  // columns of the mean, solved for beside the rest
  const MethodOptions& method_;
  const TrainOptions& train_;
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
      refuse_memory(plan_, "a factorisation for every class", dense, "--solver cg or ");
    need(dense);
  } else {
    store_where_it_pays();
    bound_rank(plan_.system);
  }
  plan_.train_system = plan_.system;
  if (method_.solver == "kcg") {  // finds the mode; whatever else is to be solved is for cg
    plan_.system.solver = "kcg";
    plan_.system.precision = inference::SolvePrecision::float64;
    plan_.reason = "The mode is found by kernel conjugate gradients, as asked for.";
  }
}

// Newton's method multiplies with K again and again, for all functions: with many inputs it is
// quicker to store it than a plan for one solve knows.
void LaplacePlanner::store_where_it_pays() {
  if (method_.op != "auto" || plan_.system.op == inference::OperatorKind::stored) return;
  const auto speed = inference::nominal_speeds(kernel_, x_.cols());
  const auto seconds = [&](inference::OperatorKind op) {
    return kProductsPerStep *
           inference::product_seconds(speed, n_, op, plan_.system.precision, functions_);
  };
  const auto pairs = 0.5 * static_cast<double>(n_) * static_cast<double>(n_);
  const double stored =
      seconds(inference::OperatorKind::stored) + pairs * speed.pair_seconds_double;
  if (kStoredHandicap * stored > seconds(inference::OperatorKind::tiled)) return;
  const double bytes = stored_bytes(n_, plan_.system.precision);
  const double rest =
      vector_bytes(n_, functions_, trend_ + train_.probes) +
      low_rank_bytes(n_, functions_,
                     inference::laplace_rank(n_, method_.preconditioning.rank.value_or(1000)));
  if (bytes > kMostStored || !fits(bytes + rest)) return;
  const auto with = plan_with(plan_.system.solver, "stored");
  const auto chosen = std::find_if(with.rows.begin(), with.rows.end(),
                                   [](const PlanRow& row) { return row.chosen; });
  if (with.system.op != inference::OperatorKind::stored || chosen == with.rows.end()) return;
  for (auto& row : plan_.rows) row.chosen = row.method == chosen->method;
  plan_.system = with.system;
  plan_.seconds = with.seconds;
  plan_.peak_bytes = std::max(plan_.peak_bytes, with.peak_bytes);
  plan_.reason =
      fmt::format("The run solves by {}: K is stored, as it is multiplied with again and again.",
                  chosen->method);
}

// The rank that fits beside the vectors of all functions.
void LaplacePlanner::bound_rank(inference::SystemChoice& choice) {
  double vectors =
      vector_bytes(n_, functions_, trend_ + (train_.train == "none" ? 1 : train_.probes));
  if (choice.op == inference::OperatorKind::stored) vectors += stored_bytes(n_, choice.precision);
  if (!fits(vectors)) refuse_memory(plan_, "a block of vectors for every class", vectors, "");
  need(vectors);
  if (choice.preconditioner != "auto") return;
  const double left = plan_.budget_bytes - plan_.base_bytes - vectors;
  const auto most = static_cast<Index>(left / low_rank_bytes(n_, functions_, 1));
  Index rank =
      std::min(inference::laplace_rank(n_, choice.preconditioning.rank.value_or(1000)), most);
  if (functions_.coupled) rank = inference::CoupledLowRank::rank_for(functions_.count, rank);
  if (rank < kLeastRank) {
    choice.preconditioner = "none";
    choice.preconditioning.rank.reset();
    plan_.reason += " Without a preconditioner: there is no memory for one.";
    return;
  }
  choice.preconditioning.rank = rank;
  need(vectors + low_rank_bytes(n_, functions_, rank));
}

void LaplacePlanner::plan_learning() {
  const bool descent = train_.train == "adam" || train_.train == "adagrad";
  const bool by_solves = descent || train_.train == "newton";
  const auto speed = inference::nominal_speeds(kernel_, x_.cols());
  const auto room =
      static_cast<Index>(std::sqrt(std::max(0.0, plan_.budget_bytes - plan_.base_bytes) /
                                   inference::exact_laplace_bytes(1, functions_)));
  const Index quick = exact_rows(speed, functions_, kLongEvaluation);
  plan_.train_rows = std::min(n_, train_.subset.value_or(n_));
  const bool exact =
      !by_solves && (train_.train == "lbfgs" || train_.subset || plan_.train_rows <= quick);
  const bool newton =
      train_.train == "newton" || (!descent && kernel_.num_parameters() <= kMostDirections);
  plan_.train_method = exact ? "exact" : descent ? train_.train : newton ? "newton" : "adam";
  if (exact && plan_.train_rows > room)
    refuse_memory(plan_, fmt::format("learning by Cholesky on {} rows", plan_.train_rows),
                  inference::exact_laplace_bytes(plan_.train_rows, functions_),
                  "--train newton or adam, a smaller --subset, or ");
  Index start = std::min({exact_rows(speed, functions_, kShortEvaluation), room, n_});
  start = std::min({start, plan_.train_rows, std::max(kLeastStartRows, plan_.train_rows / 4)});
  plan_.start_rows = exact || descent || start < kLeastStartRows ? 0 : start;
  need(inference::exact_laplace_bytes(exact ? plan_.train_rows : plan_.start_rows, functions_));
  if (!exact && plan_.train_system.solver == "cholesky") {
    plan_.train_system = plan_with("cg").system;
    bound_rank(plan_.train_system);
  }
  PlanRow row;
  row.stage = "train";
  row.fits = row.chosen = true;
  row.bytes = plan_.peak_bytes - plan_.base_bytes;
  const auto seconds_of = [&](Index rows) {
    const auto one = [&](Index n) {
      return inference::exact_laplace_flops(n, functions_) / plan_.calibration.flops;
    };
    return kFewEvaluations * one(std::min(rows, kLaplaceStartRows)) + kEvaluations * one(rows);
  };
  if (exact) {
    row.method = fmt::format("exact evidence, {} rows", plan_.train_rows);
    row.seconds = seconds_of(plan_.train_rows);
    plan_.reason = fmt::format("Learning maximises the exact Laplace evidence of {} rows. ",
                               plan_.train_rows) +
                   plan_.reason;
  } else {
    row.method =
        fmt::format("{} on {} rows, gradients by solves", plan_.train_method, plan_.train_rows);
    row.seconds =
        seconds_of(plan_.start_rows) +
        (newton ? kCorrections : train_.steps.value_or(static_cast<int>(kSteps))) *
            kProductsPerStep *
            inference::product_seconds(plan_.calibration, plan_.train_rows, plan_.train_system.op,
                                       plan_.train_system.precision, functions_ * train_.probes);
    plan_.reason =
        fmt::format(
            "Learning is by {} on gradients by solves from {} rows{}. ",
            newton ? "Newton's steps" : plan_.train_method, plan_.train_rows,
            plan_.start_rows > 0 ? fmt::format(", begun exactly on {}", plan_.start_rows) : "") +
        plan_.reason;
  }
  plan_.seconds += row.seconds;
  plan_.rows.insert(plan_.rows.begin(), std::move(row));
}

Plan LaplacePlanner::run() {
  if (train_.train == "vecchia")
    throw InvalidArgument(
        "--train vecchia is the likelihood of numbers with Gaussian noise; with another likelihood "
        "give auto, lbfgs, newton, adam, adagrad or none");
  plan_solve();
  plan_.trains = train_.train != "none";
  if (plan_.trains) plan_learning();
  return std::move(plan_);
}

}  // namespace

Plan plan_laplace(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
                  inference::FunctionCount functions, const MethodOptions& method,
                  const TrainOptions& train) {
  return LaplacePlanner(kernel, noise, x, functions, method, train).run();
}

}  // namespace mercer::models
