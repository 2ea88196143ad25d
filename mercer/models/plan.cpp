#include "mercer/models/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/exact_evidence.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/models/full_training.hpp"
#include "mercer/models/variance_plan.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::models {
namespace {

using inference::OperatorKind;
using inference::SolvePrecision;
using inference::SystemChoice;

// Below this many rows a factorisation takes about a second: nothing else is worth trying.
constexpr Index kAlwaysDirect = 4000;
// Exact gradients that take longer than this are left to a subset of the rows.
constexpr double kLongestGradient = 2.0;
constexpr Index kDefaultSubset = 4000;
constexpr Index kStartRows = 1500;
// Before learning on all rows by solves: exact steps on this many, from several starts.
constexpr Index kSubsetBeforeSolves = 2000;
// What learning by solves typically takes: exact gradients, each with so many iterations and
// passes over the tiles with derivatives; evaluations of the surrogate; steps of Adam.
constexpr double kExactGradients = 5, kLearningIterations = 10, kDerivativePasses = 3;
constexpr double kSurrogateEvaluations = 60;
// Exact gradients that would take longer than this in all are left to the surrogate.
constexpr double kLongestLearning = 3600;
// Hyperparameters learned on fewer rows than this are not worth having.
constexpr Index kLeastSubset = 100;
// The program, its libraries and their buffers.
constexpr double kProgramBytes = 40.0 * 1048576;
// Evaluations that L-BFGS typically needs from the start values, and from a good start.
constexpr double kEvaluationsFromScratch = 60;
constexpr double kEvaluationsFromGoodStart = 20;
constexpr Index kDirectVarianceBlock = 256;
constexpr Index kIterativeVarianceBlock = 64;

// `auto` stores K only when that is estimated to save a third of the time.
constexpr double kStoredHandicap = 1.5;

struct Candidate {
  PlanRow row;
  SystemChoice choice;
  double nominal_seconds = 0;  // what candidates are ranked by
};

// Everything the estimates depend on.
struct Problem {
  const kernels::Kernel& kernel;
  double noise;
  ConstMatrixView x;
  const MethodOptions& method;
  PlanFor purpose;
  inference::Speeds speed;
  double prior_variance;  // mean of k(x, x)
  double free_bytes;      // what the budget leaves
  double test_columns;    // right-hand sides of a prediction, in blocks
  Index n() const { return x.rows(); }
  Index d() const { return x.cols(); }
  Problem at_nominal_speed() const {
    auto p = *this;
    p.speed = inference::nominal_speeds(kernel, x.cols());
    return p;
  }
  /// Right-hand sides solved together.
  Index columns() const {
    if (purpose == PlanFor::predict) return kIterativeVarianceBlock;
    return 1 + inference::mean_basis_size(inference::mean_kind(method.mean), d());
  }
};

bool asked(const std::string& option, std::string_view value) {
  return option == "auto" || option == value;
}

double product_seconds(const Problem& p, const SystemChoice& choice, Index columns) {
  return inference::product_seconds(p.speed, p.n(), choice.op, choice.precision, columns);
}

// Without a preconditioner CG takes about sqrt(N v/s2) iterations to 1e-6 (algorithms, pitfall 6);
// a low-rank one about a third of that, a sparse inverse factor or the hybrid a twentieth. Guesses,
// for ranking and for an order of magnitude.
double guessed_iterations(const Problem& p, const SystemChoice& choice) {
  const double digits = std::log10(1 / choice.tolerance) / 6;
  double iterations = digits * std::sqrt(static_cast<double>(p.n()) * p.prior_variance / p.noise);
  if (choice.preconditioner == "hybrid" || choice.preconditioner == "vecchia" ||
      choice.preconditioner == "auto")
    iterations /= 20;
  else if (choice.preconditioner != "none" && choice.preconditioner != "jacobi")
    iterations /= 3;
  return std::clamp(iterations, 5.0, static_cast<double>(choice.max_iterations));
}

Candidate direct_candidate(const Problem& p, SystemChoice choice) {
  choice.solver = "cholesky";
  choice.preconditioner = "none";
  choice.precision = SolvePrecision::float64;
  const auto n = static_cast<double>(p.n());
  Candidate c;
  c.row.method = "cholesky";
  c.row.bytes = linalg::cholesky_bytes(p.n()) + 24 * n * static_cast<double>(p.columns());
  c.row.seconds =
      linalg::cholesky_flops(p.n()) / p.speed.flops + n * n * p.speed.pair_seconds_double;
  if (p.purpose == PlanFor::predict) {
    c.row.bytes += 16 * n * static_cast<double>(kDirectVarianceBlock);
    c.row.seconds += p.test_columns * n * n / p.speed.flops;
  }
  c.row.allowed = asked(p.method.solver, "cholesky") && asked(p.method.op, "stored") &&
                  (p.method.precision == "auto" || p.method.precision == "double") &&
                  (p.method.preconditioner == "auto" || p.method.preconditioner == "none") &&
                  !p.method.preconditioning.rank;  // means a preconditioner, so an iterative solve
  c.choice = choice;
  return c;
}

// What the preconditioner costs. `auto` may go up to the largest rank that the memory left beside
// the rest (`other_bytes`) holds, which is set in the choice; it is expected to stop at a
// quarter of the default rank. Sets the bytes of the largest.
preconditioners::Cost preconditioner_cost(const Problem& p, double other_bytes,
                                          SystemChoice& choice, double& largest_bytes) {
  if (choice.preconditioner != "auto")
    return preconditioners::preconditioner(choice.preconditioner)
        .cost(p.n(), p.d(), choice.preconditioning);
  const Index most = choice.preconditioning.rank.value_or(inference::kAdaptiveMaxRank);
  const auto ranks = inference::adaptive_ranks(p.n(), most);
  const Index largest = std::max(
      ranks.front(), inference::affordable_rank(p.n(), p.d(), most, p.free_bytes - other_bytes));
  choice.preconditioning.rank = largest;
  largest_bytes =
      inference::adaptive_cost(p.n(), p.d(), largest, inference::kAdaptiveMostNeighbours)
          .peak_bytes;
  Index expected = ranks.front();
  for (const Index rank : ranks)
    if (rank <= largest && 4 * rank <= preconditioners::default_rank(p.n())) expected = rank;
  return inference::adaptive_cost(p.n(), p.d(), expected, inference::kAdaptiveNeighbours);
}

Candidate iterative_candidate(const Problem& p, SystemChoice choice) {
  const auto n = static_cast<double>(p.n());
  const auto columns = static_cast<double>(p.columns());
  Candidate c;
  c.row.method = fmt::format("{} {} {}, {}", choice.solver, to_string(choice.op),
                             to_string(choice.precision), choice.preconditioner);
  // Beside the operator and the solver's workspace: right-hand sides, solutions and residuals.
  c.row.bytes =
      operators::tiled_bytes(p.n(), p.d(), p.columns()) +
      krylov::solver(choice.solver).bytes(p.n(), p.columns(), choice.preconditioner != "none") +
      8 * n * columns * 3;
  // Mixed precision keeps a float32 operator beside the one in double.
  if (choice.precision != SolvePrecision::float64 && choice.op == OperatorKind::tiled)
    c.row.bytes += operators::tiled_bytes(p.n(), p.d(), 0);
  if (choice.op == OperatorKind::stored)
    c.row.bytes += operators::StoredOperator::bytes(
        p.n(), choice.precision == SolvePrecision::float64 ? operators::Precision::float64
                                                           : operators::Precision::float32);
  const double iterations = guessed_iterations(p, choice);
  double build = 0, largest_bytes = 0;
  const double other_bytes = c.row.bytes;
  double per_iteration = product_seconds(p, choice, p.columns());
  if (choice.preconditioner != "none") {
    const auto cost = preconditioner_cost(p, c.row.bytes, choice, largest_bytes);
    const double product = product_seconds(p, choice, 1);
    c.row.bytes += std::max(cost.bytes, cost.peak_bytes);
    build = inference::build_seconds(p.speed, cost, product);
    per_iteration += inference::apply_seconds(p.speed, cost, product, p.columns());
  }
  if (choice.op == OperatorKind::stored) build += 0.5 * n * n * p.speed.pair_seconds_double;
  c.row.build_seconds = build;
  c.row.seconds = build + iterations * per_iteration;
  c.row.note = fmt::format("about {:.0f} iterations", iterations);
  if (largest_bytes > 0)
    c.row.note +=
        fmt::format(", up to {} if a larger rank pays", format_bytes(other_bytes + largest_bytes));
  if (p.purpose == PlanFor::predict)
    c.row.seconds = build + std::ceil(p.test_columns / columns) * iterations * per_iteration;
  c.row.allowed = asked(p.method.solver, choice.solver) &&
                  asked(p.method.op, to_string(choice.op)) &&
                  asked(p.method.precision, to_string(choice.precision)) &&
                  asked(p.method.preconditioner, choice.preconditioner);
  c.choice = std::move(choice);
  return c;
}

std::vector<Candidate> solve_candidates(const Problem& p) {
  SystemChoice base;
  base.tolerance = p.method.tolerance;
  base.max_iterations = p.method.max_iterations;
  std::vector<Candidate> out = {direct_candidate(p, base)};
  std::vector<std::string> names = {"auto", "none"};
  if (p.method.preconditioner != "auto") names = {p.method.preconditioner};
  base.solver = p.method.solver;
  if (base.solver == "auto" || base.solver == "cholesky")
    base.solver = needs_flexible(names.front()) ? "fcg" : "cg";
  if (p.purpose == PlanFor::predict)
    base.expected_solves = std::ceil(p.test_columns / static_cast<double>(p.columns()));
  for (const auto op : {OperatorKind::tiled, OperatorKind::stored}) {
    for (const auto precision :
         {SolvePrecision::mixed, SolvePrecision::float64, SolvePrecision::float32}) {
      // Single precision cannot promise a tolerance: only on request.
      if (precision == SolvePrecision::float32 && p.method.precision != "single") continue;
      if (precision != SolvePrecision::mixed && p.method.precision == "auto" &&
          op == OperatorKind::stored)
        continue;
      for (const auto& name : names) {
        base.op = op;
        base.precision = precision;
        base.preconditioner = name;
        base.preconditioning = preconditioning_for(name, p.method);
        out.push_back(iterative_candidate(p, base));
      }
    }
  }
  return out;
}

// A preconditioner that the mathematics does not allow for this kernel or these data.
void refuse_unsuitable(const MethodOptions& method, const kernels::Kernel& kernel,
                       ConstMatrixView x) {
  if (method.preconditioner == "auto") return;
  const auto& entry = preconditioners::preconditioner(method.preconditioner);
  if (entry.refusal == nullptr) return;
  const auto reason = entry.refusal(kernel, x.rows(), x.cols());
  if (!reason.empty())
    throw InvalidArgument(fmt::format("--preconditioner {}: {}", entry.name, reason));
}

// Seconds for comparing: storing K must pay clearly and stay small before `auto` does it.
// `auto` begins with plain iterations, so they alone are taken only where nothing else fits.
double handicapped_seconds(const Candidate& c, const MethodOptions& method) {
  if (method.preconditioner == "auto" && c.choice.preconditioner == "none" &&
      c.choice.solver != "cholesky")
    return 1e30 + c.nominal_seconds;
  if (c.choice.op != OperatorKind::stored || method.op == "stored") return c.nominal_seconds;
  return c.row.bytes > kMostStored ? HUGE_VAL : kStoredHandicap * c.nominal_seconds;
}

// The candidate to take: the quickest that is allowed and fits; small problems are direct.
Candidate* best_candidate(std::vector<Candidate>& candidates, const Plan& plan,
                          const MethodOptions& method) {
  for (auto& c : candidates) c.row.fits = plan.base_bytes + c.row.bytes <= plan.budget_bytes;
  Candidate* best = nullptr;
  for (auto& c : candidates) {
    if (!c.row.fits || !c.row.allowed) continue;
    if (c.choice.solver == "cholesky" && plan.n <= kAlwaysDirect) {
      best = &c;
      break;
    }
    if (best == nullptr || handicapped_seconds(c, method) < handicapped_seconds(*best, method))
      best = &c;
  }
  return best;
}

// Krylov methods take every operator, precision and preconditioner: only a factorisation is choosy.
std::string conflict(const MethodOptions& method) {
  std::vector<std::string> others;
  if (!asked(method.op, "stored")) others.push_back("--operator " + method.op);
  if (!asked(method.precision, "double")) others.push_back("--precision " + method.precision);
  if (!asked(method.preconditioner, "none"))
    others.push_back("--preconditioner " + method.preconditioner);
  if (method.solver != "cholesky" || others.empty())
    return "no method allows this combination of --solver, --operator, --precision and "
           "--preconditioner; leave one of them out";
  return fmt::format(
      "--solver {} stores the matrix and factors it in double precision, without a "
      "preconditioner; leave out {}, or choose another --solver",
      method.solver, fmt::join(others, " and "));
}

[[noreturn]] void refuse(const Plan& plan, const std::vector<PlanRow>& rows,
                         const std::string& what, const MethodOptions& method) {
  const PlanRow* least = nullptr;
  for (const auto& row : rows)
    if (row.allowed && (least == nullptr || row.bytes < least->bytes)) least = &row;
  if (least == nullptr) throw InvalidArgument(conflict(method));
  throw DoesNotFit(fmt::format(
      "{} of {} rows does not fit into {}; the smallest is {} ({}), so --memory {:.0f}M would do",
      what, plan.n, format_bytes(plan.budget_bytes), least->method,
      format_bytes(plan.base_bytes + least->bytes),
      std::ceil((plan.base_bytes + least->bytes) * 1.05 / 1048576)));
}

double gradient_seconds(const Problem& p, Index rows) {
  const auto m = static_cast<double>(rows);
  const auto parameters = static_cast<double>(p.kernel.num_parameters());
  return inference::exact_evidence_flops(rows, true) / p.speed.flops +
         m * m * p.speed.pair_seconds_double * (2 + parameters / 2);
}

// The solves of learning: as the user asks, else conjugate gradients with float32 products.
SystemChoice learning_system(const Problem& p) {
  SystemChoice choice;
  choice.preconditioner = p.method.preconditioner;
  choice.preconditioning = preconditioning_for(choice.preconditioner, p.method);
  choice.solver = p.method.solver;
  if (choice.solver == "auto" || choice.solver == "cholesky")
    choice.solver = needs_flexible(choice.preconditioner) ? "fcg" : "cg";
  choice.precision = p.method.precision == "double"   ? SolvePrecision::float64
                     : p.method.precision == "single" ? SolvePrecision::float32
                                                      : SolvePrecision::mixed;
  choice.op = p.method.op == "stored" ? OperatorKind::stored : OperatorKind::tiled;
  choice.max_iterations = p.method.max_iterations;
  return choice;
}

PlanRow solves_row(const Problem& p, const TrainOptions& train, const SystemChoice& choice,
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
  const auto cost = preconditioners::preconditioner("vecchia").cost(rows, p.d(), sparse);
  const double product =
      inference::product_seconds(p.speed, rows, choice.op, choice.precision, columns);
  const double gradient = inference::build_seconds(p.speed, cost, product) +
                          kLearningIterations * product +
                          kDerivativePasses * 0.5 * n * n * derivative +
                          n * static_cast<double>((m + 1) * (m + 1)) * derivative;
  PlanRow row;
  row.stage = "train";
  row.method =
      fmt::format("{} on all {} rows, {}", method, rows,
                  method == "vecchia" ? "Vecchia likelihood" : "exact gradients by solves");
  const bool descent = method == "adam" || method == "adagrad";
  const double gradients = method == "vecchia" ? 0.0 : descent ? train.steps : kExactGradients;
  const double starts = 1 + train.restarts;
  row.seconds =
      starts * kEvaluationsFromScratch * gradient_seconds(p, std::min(rows, kSubsetBeforeSolves)) +
      gradients * gradient + (descent ? 0.0 : kSurrogateEvaluations * surrogate);
  row.note = method == "vecchia" ? fmt::format("{:.2g} s an evaluation", surrogate)
                                 : fmt::format("{:.2g} s a gradient", gradient);
  const double small = inference::exact_evidence_bytes(std::min(rows, kSubsetBeforeSolves));
  double bytes = approximations::VecchiaLikelihood::bytes(rows, p.d(), s);
  if (gradients > 0)
    bytes += 3 * operators::tiled_bytes(rows, p.d(), columns) + cost.peak_bytes +
             krylov::solver(choice.solver).bytes(rows, columns, true) +
             8 * n * static_cast<double>(columns) * 8;
  row.bytes = std::max(small, bytes);
  return row;
}

void plan_training(const Problem& p, const TrainOptions& train, Plan& plan) {
  const auto row_for = [&](Index rows, const std::string& name) {
    PlanRow row;
    row.stage = "train";
    row.method = name;
    row.bytes = inference::exact_evidence_bytes(rows);
    const bool staged = rows > kStartRows + kStartRows / 3;
    const double starts = 1 + train.restarts;
    row.seconds = staged ? starts * kEvaluationsFromScratch * gradient_seconds(p, kStartRows) +
                               kEvaluationsFromGoodStart * gradient_seconds(p, rows)
                         : starts * kEvaluationsFromScratch * gradient_seconds(p, rows);
    row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
    row.note = fmt::format("{:.2g} s a gradient", gradient_seconds(p, rows));
    return row;
  };
  const Index rows = std::min(p.n(), train.subset.value_or(p.n()));
  const std::string of_rows =
      rows == p.n() ? fmt::format("all {} rows", rows) : fmt::format("random {} rows", rows);
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
  const double affordable = std::sqrt(std::max(0.0, plan.budget_bytes - plan.base_bytes) / 8);
  const Index fewer = std::min(
      rows, std::clamp(static_cast<Index>(affordable * 0.95), kLeastSubset, kDefaultSubset));
  PlanRow subset = row_for(fewer, fmt::format("exact likelihood, random {} rows", fewer));
  const bool exact_allowed = train.train == "auto" || train.train == "lbfgs";
  const bool exact_pays =
      rows <= kAlwaysDirect || gradient_seconds(p.at_nominal_speed(), rows) <= kLongestGradient;
  std::vector<PlanRow> rows_here;
  if (exact_allowed) rows_here.push_back(exact);
  rows_here.push_back(solves);
  if (exact_allowed && fewer < rows) rows_here.push_back(subset);
  std::size_t chosen = 0;
  plan.train_rows = rows;
  if (exact_allowed && exact_pays && exact.fits) {
    plan.start_rows = rows > kStartRows + kStartRows / 3 ? kStartRows : 0;
    plan.reason += fmt::format("Hyperparameters are learned on {} (exact likelihood). ", of_rows);
  } else if (solves.fits) {
    chosen = exact_allowed ? 1 : 0;
    plan.train_method = method;
    plan.train_system = system;
    plan.start_rows = std::min(rows, kSubsetBeforeSolves);
    plan.reason += fmt::format(
        "Hyperparameters are learned on {} rows by Cholesky, then on {} by {}. ", plan.start_rows,
        of_rows, method == "vecchia" ? "the Vecchia likelihood" : "exact gradients from solves");
  } else if (exact_allowed && subset.fits) {
    chosen = rows_here.size() - 1;
    plan.train_rows = fewer;
    plan.start_rows = fewer > kStartRows + kStartRows / 3 ? kStartRows : 0;
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

// Returns the seconds of the choice on a typical machine.
double plan_system(const Problem& p, Plan& plan) {
  auto candidates = solve_candidates(p);
  const auto nominal = solve_candidates(p.at_nominal_speed());
  for (std::size_t i = 0; i < candidates.size(); ++i)
    candidates[i].nominal_seconds = nominal[i].row.seconds;
  Candidate* best = best_candidate(candidates, plan, p.method);
  std::vector<PlanRow> rows;
  for (auto& c : candidates) {
    c.row.stage = p.purpose == PlanFor::predict ? "predict" : "solve";
    c.row.chosen = &c == best;
    // A row ruled out by the user's own options only clutters the table.
    if (c.row.allowed) rows.push_back(c.row);
  }
  if (best == nullptr)
    refuse(plan, rows, p.purpose == PlanFor::predict ? "prediction" : "a solve", p.method);
  plan.system = best->choice;
  plan.seconds += best->row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + best->row.bytes);
  plan.variance_block =
      best->choice.solver == "cholesky" ? kDirectVarianceBlock : kIterativeVarianceBlock;
  plan.reason +=
      fmt::format("{} solves by {}: {}.", p.purpose == PlanFor::predict ? "Prediction" : "The run",
                  best->row.method,
                  rows.size() == 1 ? "the only method that the options allow"
                  : plan.n <= kAlwaysDirect && best->choice.solver == "cholesky"
                      ? "a factorisation of so few rows takes about a second"
                      : "the quickest that fits, by estimate");
  plan.rows.insert(plan.rows.end(), rows.begin(), rows.end());
  return best->nominal_seconds;
}

}  // namespace

double base_bytes(Index n, Index d) {
  return kProgramBytes + 16.0 * static_cast<double>(n) * static_cast<double>(d + 1);
}

double memory_budget(const MethodOptions& method, double base) {
  if (method.memory) return static_cast<double>(*method.memory);
  return base + 0.8 * static_cast<double>(available_memory_bytes());
}

Plan make_plan(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
               const MethodOptions& method, const TrainOptions& train, PlanFor purpose,
               const VarianceOptions& variance) {
  check(method);
  check(train);
  check(variance);
  Plan plan;
  plan.n = x.rows();
  plan.d = x.cols();
  plan.calibration = calibrate(kernel, x);
  // An estimate, not the resident size of the moment: the same command makes the same plan. The
  // data are there twice, as read and as scaled.
  plan.base_bytes = base_bytes(x.rows(), x.cols());
  plan.budget_bytes = memory_budget(method, plan.base_bytes);
  plan.peak_bytes = plan.base_bytes;
  const Index sample = std::min<Index>(x.rows(), 1000);
  const Problem p{kernel,
                  noise,
                  x,
                  method,
                  purpose,
                  plan.calibration,
                  kernel.diagonal(x.topRows(sample)).mean(),
                  plan.budget_bytes - plan.base_bytes,
                  0};
  refuse_unsuitable(method, kernel, x);
  if (purpose == PlanFor::fit && train.train != "none") plan_training(p, train, plan);
  if (purpose == PlanFor::predict)
    plan_variances(kernel, variance, plan, [&](double columns, Plan& into) {
      Problem some = p;
      some.test_columns = columns;
      return plan_system(some, into);
    });
  else
    plan_system(p, plan);
  return plan;
}

}  // namespace mercer::models
