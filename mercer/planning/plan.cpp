#include "mercer/planning/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/krylov/kernel_cg.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/planning/laplace_system_plan.hpp"
#include "mercer/planning/training_plan.hpp"
#include "mercer/planning/variance_plan.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::planning {
namespace {

using inference::SolvePrecision;
using inference::SystemChoice;

// The program, its libraries and their buffers.
constexpr double kProgramBytes = 40.0 * 1048576;
constexpr Index kDirectVarianceBlock = 256;
constexpr Index kIterativeVarianceBlock = 64;

struct Candidate {
  PlanRow row;
  SystemChoice choice;
  double nominal_seconds = 0;  // what candidates are ranked by
};

// Everything the estimates depend on.
struct Setting {
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
  Setting at_nominal_speed() const {
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

// A factorisation keeps K, as some operators do.
bool allows_factor(const std::string& op) {
  return op == "auto" || operators::operators().find(op).keeps_matrix;
}

double product_seconds(const Setting& p, const SystemChoice& choice, Index columns) {
  return inference::product_seconds(p.speed, p.n(), choice.op, choice.precision, columns);
}

// Without a preconditioner CG takes about sqrt(N v/s2) iterations to 1e-6 (docs/solvers.md);
// a low-rank one about a third of that, a sparse inverse factor or the hybrid a twentieth. Guesses,
// for ranking and for an order of magnitude.
double guessed_iterations(const Setting& p, const SystemChoice& choice) {
  const double digits = std::log10(1 / choice.tolerance) / 6;
  double iterations = digits * std::sqrt(static_cast<double>(p.n()) * p.prior_variance / p.noise);
  if (choice.preconditioner == "hybrid" || choice.preconditioner == "vecchia" ||
      choice.preconditioner == "auto")
    iterations /= 20;
  else if (choice.preconditioner != "none" && choice.preconditioner != "jacobi")
    iterations /= 3;
  return std::clamp(iterations, 5.0, static_cast<double>(choice.max_iterations));
}

Candidate direct_candidate(const Setting& p, SystemChoice choice) {
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
  c.row.allowed = asked(p.method.solver, "cholesky") && allows_factor(p.method.op) &&
                  (p.method.precision == "auto" || p.method.precision == "double") &&
                  (p.method.preconditioner == "auto" || p.method.preconditioner == "none") &&
                  !p.method.preconditioning.rank;  // means a preconditioner, so an iterative solve
  c.choice = choice;
  return c;
}

// What the preconditioner costs. `auto` may go up to the largest rank that the memory left beside
// the rest (`other_bytes`) holds, which is set in the choice; it is expected to stop at a
// quarter of the default rank. Sets the bytes of the largest.
preconditioners::Cost preconditioner_cost(const Setting& p, double other_bytes,
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

Candidate iterative_candidate(const Setting& p, SystemChoice choice) {
  const auto n = static_cast<double>(p.n());
  const auto columns = static_cast<double>(p.columns());
  Candidate c;
  c.row.method = fmt::format("{} {} {}, {}", choice.solver, choice.op, to_string(choice.precision),
                             choice.preconditioner);
  // Beside the operator and the solver's workspace: right-hand sides, solutions and residuals.
  c.row.bytes =
      inference::operator_bytes(p.n(), p.d(), p.columns(), choice.op, choice.precision) +
      (choice.solver == "kcg" ? krylov::kernel_cg_bytes(p.n(), p.columns())
                              : krylov::solver(choice.solver)
                                    .bytes(p.n(), p.columns(), choice.preconditioner != "none")) +
      8 * n * columns * 3;
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
  build += inference::operator_build_seconds(p.speed, p.n(), choice.op, choice.precision);
  c.row.build_seconds = build;
  c.row.seconds = build + iterations * per_iteration;
  c.row.note = fmt::format("about {:.0f} iterations", iterations);
  if (largest_bytes > 0)
    c.row.note +=
        fmt::format(", up to {} if a larger rank pays", format_bytes(other_bytes + largest_bytes));
  if (p.purpose == PlanFor::predict)
    c.row.seconds = build + std::ceil(p.test_columns / columns) * iterations * per_iteration;
  c.row.allowed = asked(p.method.solver, choice.solver) && asked(p.method.op, choice.op) &&
                  asked(p.method.precision, to_string(choice.precision)) &&
                  asked(p.method.preconditioner, choice.preconditioner);
  c.choice = std::move(choice);
  return c;
}

// Asked for, or one that `auto` may take and the mathematics allows.
bool may_use(const operators::OperatorInfo& op, const Setting& p) {
  return p.method.op == op.name ||
         (op.automatic.allowed && operators::refusal(op, p.kernel, p.n(), p.d()).empty());
}

std::vector<Candidate> solve_candidates(const Setting& p) {
  SystemChoice base;
  base.tolerance = p.method.tolerance;
  base.max_iterations = p.method.max_iterations;
  std::vector<Candidate> out = {direct_candidate(p, base)};
  std::vector<std::string> names = {"auto", "none"};
  if (p.method.preconditioner != "auto") names = {p.method.preconditioner};
  if (p.method.solver == "kcg") names = {"none"};
  base.solver = p.method.solver == "kcg" ? "kcg" : iterative_solver(p.method.solver, names.front());
  if (p.purpose == PlanFor::predict)
    base.expected_solves = std::ceil(p.test_columns / static_cast<double>(p.columns()));
  for (const auto& op : operators::operators()) {
    if (!may_use(op, p)) continue;
    for (const auto precision :
         {SolvePrecision::mixed, SolvePrecision::float64, SolvePrecision::float32}) {
      if (base.solver == "kcg" && precision != SolvePrecision::float64) continue;
      // Single precision cannot promise a tolerance: only on request.
      if (precision == SolvePrecision::float32 && p.method.precision != "single") continue;
      if (precision != SolvePrecision::mixed && p.method.precision == "auto" && op.keeps_matrix &&
          base.solver != "kcg")
        continue;
      for (const auto& name : names) {
        base.op = op.name;
        base.precision = precision;
        base.preconditioner = name;
        base.preconditioning = preconditioning_for(name, p.method);
        out.push_back(iterative_candidate(p, base));
      }
    }
  }
  return out;
}

// An operator or a preconditioner that the mathematics does not allow for this kernel or these
// data.
void refuse_unsuitable(const MethodOptions& method, const kernels::Kernel& kernel,
                       ConstMatrixView x) {
  if (method.op != "auto") {
    const auto reason =
        operators::refusal(operators::operators().find(method.op), kernel, x.rows(), x.cols());
    if (!reason.empty()) throw InvalidArgument(fmt::format("`operator={}`: {}", method.op, reason));
  }
  if (method.preconditioner == "auto") return;
  const auto& entry = preconditioners::preconditioner(method.preconditioner);
  if (entry.refusal == nullptr) return;
  const auto reason = entry.refusal(kernel, x.rows(), x.cols());
  if (!reason.empty())
    throw InvalidArgument(fmt::format("`preconditioner={}`: {}", entry.name, reason));
}

// Seconds for comparing: an operator states how clearly it must pay before `auto` takes it.
// `auto` begins with plain iterations, so they alone are taken only where nothing else fits.
double handicapped_seconds(const Candidate& c, const MethodOptions& method) {
  if (method.preconditioner == "auto" && c.choice.preconditioner == "none" &&
      c.choice.solver != "cholesky")
    return 1e30 + c.nominal_seconds;
  if (c.choice.solver == "cholesky" || method.op == c.choice.op) return c.nominal_seconds;
  const auto& rule = operators::operators().find(c.choice.op).automatic;
  return c.row.bytes > rule.most_bytes ? HUGE_VAL : rule.least_gain * c.nominal_seconds;
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
  if (!allows_factor(method.op)) others.push_back(fmt::format("`operator={}`", method.op));
  if (!asked(method.precision, "double"))
    others.push_back(fmt::format("`precision={}`", method.precision));
  if (!asked(method.preconditioner, "none"))
    others.push_back(fmt::format("`preconditioner={}`", method.preconditioner));
  if (method.solver != "cholesky" || others.empty())
    return "no method allows this combination of `solver`, `operator`, `precision` and "
           "`preconditioner`; leave one of them out";
  return fmt::format(
      "`solver={}` stores the matrix and factors it in double precision, without a "
      "preconditioner; leave out {}, or choose another `solver`",
      method.solver, fmt::join(others, " and "));
}

}  // namespace

void refuse(const Plan& plan, const std::vector<PlanRow>& rows, const std::string& what,
            const MethodOptions& method) {
  const PlanRow* least = nullptr;
  for (const auto& row : rows)
    if (row.allowed && (least == nullptr || row.bytes < least->bytes)) least = &row;
  if (least == nullptr) throw InvalidArgument(conflict(method));
  throw DoesNotFit(fmt::format(
      "{} of {} rows does not fit into {}; the smallest is {} ({}), so `memory={:.0f}M` would do",
      what, plan.n, format_bytes(plan.budget_bytes), least->method,
      format_bytes(plan.base_bytes + least->bytes),
      std::ceil((plan.base_bytes + least->bytes) * 1.05 / 1048576)));
}

namespace {

// Returns the seconds of the choice on a typical machine.
double plan_system(const Setting& p, Plan& plan) {
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

namespace {

Plan begin_plan(const kernels::Kernel& kernel, ConstMatrixView x, const MethodOptions& method) {
  check(method);
  refuse_unsuitable(method, kernel, x);
  Plan plan;
  plan.n = x.rows();
  plan.d = x.cols();
  plan.calibration = calibrate(kernel, x);
  // An estimate, not the resident size of the moment: the same command makes the same plan. The
  // data are there twice, as read and as scaled.
  plan.base_bytes = base_bytes(x.rows(), x.cols());
  plan.budget_bytes = memory_budget(method, plan.base_bytes);
  plan.peak_bytes = plan.base_bytes;
  return plan;
}

Setting setting_of(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
                   const MethodOptions& method, PlanFor purpose, const Plan& plan) {
  const Index sample = std::min<Index>(x.rows(), 1000);
  return {kernel,
          noise,
          x,
          method,
          purpose,
          plan.calibration,
          kernel.diagonal(x.topRows(sample)).mean(),
          plan.budget_bytes - plan.base_bytes,
          0};
}

}  // namespace

Plan make_plan(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
               const MethodOptions& method, PlanFor purpose, const VarianceOptions& variance) {
  check(variance);
  Plan plan = begin_plan(kernel, x, method);
  const auto p = setting_of(kernel, noise, x, method, purpose, plan);
  if (purpose == PlanFor::predict)
    plan_variances(kernel, variance, plan, [&](double columns, Plan& into) {
      Setting some = p;
      some.test_columns = columns;
      return plan_system(some, into);
    });
  else
    plan_system(p, plan);
  return plan;
}

Plan plan_fit(const inference::Problem& problem, double noise, const inference::Observations& rows,
              const MethodOptions& method, const TrainOptions& train) {
  check(train);
  const bool trains = train.train != "none";
  if (!problem.gaussian()) {
    Plan plan =
        plan_laplace_system(problem, noise, rows, method, laplace_needs(problem, rows, train));
    if (trains) plan_training(problem, rows, method, train, plan);
    return plan;
  }
  Plan plan = begin_plan(problem.kernel, rows.x, method);
  if (trains) plan_training(problem, rows, method, train, plan);
  plan_system(setting_of(problem.kernel, noise, rows.x, method, PlanFor::solve, plan), plan);
  return plan;
}

}  // namespace mercer::planning
