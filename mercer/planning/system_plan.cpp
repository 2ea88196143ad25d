#include "mercer/planning/system_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/laplace/coupled_query.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/rpcholesky.hpp"

namespace mercer::planning {
namespace {

using inference::CoupledQuery;
using inference::IterativeLaplaceSystem;
using inference::SolvePrecision;
using inference::SystemChoice;
using inference::SystemSolver;

// Test rows whose variances are found together: by a factor and by solves; of coupled functions by
// factors, and by solves at most.
constexpr Index kDirectBlock = 256, kIterativeBlock = 64;
constexpr Index kCoupledDirectBlock = 64, kCoupledIterativeBlock = 16;
// Products of a mode of Laplace's approximation, and of one solve for covariances of coupled
// functions.
constexpr double kProductsOfMode = 40, kProductsOfCovariance = 20;
// A low-rank preconditioner of fewer columns than this is not worth having.
constexpr Index kLeastRank = 20;
constexpr Index kMostLaplaceRank = 1000;

bool asked(const std::string& option, std::string_view value) {
  return option == "auto" || option == value;
}

// A factorisation keeps K, as some operators do.
bool allows_factor(const std::string& op) {
  return op == "auto" || operators::operators().find(op).keeps_matrix;
}

// Everything the estimates depend on.
struct Setting {
  const System& system;
  const MethodOptions& method;
  inference::Speeds speed;
  double free_bytes;  // what the budget leaves

  bool curved() const { return system.form == SystemForm::curved; }
  bool predicts() const { return system.purpose == PlanFor::predict; }
  /// Columns of one product with K.
  Index product_columns() const { return curved() ? system.functions.count : system.columns; }
  /// Those of predictions of few rows, which are less than a block.
  Index timed_columns() const {
    if (curved() || !predicts()) return product_columns();
    const auto asked = static_cast<Index>(std::ceil(system.rows + system.draws));
    return std::clamp<Index>(asked, 1, system.columns);
  }
  double product_seconds(const SystemChoice& choice, Index columns) const {
    return inference::product_seconds(speed, system.n, choice.op, choice.precision, columns);
  }
};

struct Cost {
  double bytes = 0;
  double seconds = 0;
};

Cost direct_cost(const Setting& p) {
  const auto& s = p.system;
  const auto n = static_cast<double>(s.n);
  if (p.curved() && p.predicts()) {
    const Index c = s.functions.count;
    return {
        CoupledQuery::factor_bytes(s.n, c) +
            static_cast<double>(kCoupledDirectBlock) * CoupledQuery::factored_row_bytes(s.n, c) +
            s.draws * CoupledQuery::draw_bytes(s.n, c),
        (CoupledQuery::factor_flops(s.n, c) +
         (s.rows + s.draws) * CoupledQuery::row_flops(s.n, c)) /
            p.speed.flops};
  }
  if (p.curved())
    return {inference::exact_laplace_bytes(s.n, s.functions),
            inference::exact_laplace_flops(s.n, s.functions) / p.speed.flops};
  Cost cost{linalg::cholesky_bytes(s.n) + 24 * n * static_cast<double>(s.columns),
            linalg::cholesky_flops(s.n) / p.speed.flops + n * n * p.speed.pair_seconds_double};
  if (p.predicts()) {
    cost.bytes += 16 * n * static_cast<double>(kDirectBlock);
    cost.seconds += (s.rows + s.draws) * n * n / p.speed.flops;
  }
  return cost;
}

Candidate direct_candidate(const Setting& p, SystemChoice choice) {
  choice.solver = inference::kCholesky;
  choice.preconditioner = "none";
  choice.precision = SolvePrecision::float64;
  const auto cost = direct_cost(p);
  Candidate c;
  c.row.method = choice.solver;
  c.row.bytes = cost.bytes;
  c.row.seconds = cost.seconds;
  c.row.allowed = asked(p.method.solver, choice.solver) && allows_factor(p.method.op) &&
                  asked(p.method.precision, "double") && asked(p.method.preconditioner, "none") &&
                  !p.method.preconditioning.rank;  // means a preconditioner, so an iterative solve
  c.block = p.curved() ? kCoupledDirectBlock : kDirectBlock;
  c.choice = std::move(choice);
  return c;
}

// Without a preconditioner CG takes about sqrt(N v/s2) iterations to 1e-6 (docs/solvers.md);
// preconditioners say by what that is divided. Guesses, for ranking and for an order of magnitude.
double guessed_iterations(const System& s, const SystemChoice& choice) {
  const double tolerance =
      choice.random_stop ? choice.random_stop->early_tolerance : choice.tolerance;
  const double digits = std::log10(1 / tolerance) / 6;
  double iterations = digits * std::sqrt(static_cast<double>(s.n) * s.prior_variance / s.noise);
  iterations /= choice.preconditioner == "auto"
                    ? inference::kAdaptiveGain
                    : preconditioners::preconditioner(choice.preconditioner).expected_gain;
  return std::clamp(iterations, 5.0, static_cast<double>(choice.max_iterations));
}

// What a preconditioner costs, and the most bytes that `auto` may come to take.
struct Preconditioning {
  preconditioners::Cost cost;
  double bytes = 0;
  std::optional<double> largest_bytes;
};

// `auto` of H may go up to the largest rank that the memory left beside the rest holds, which is
// set in the choice; it is expected to stop at a quarter of the default rank.
Preconditioning adaptive(const Setting& p, double other_bytes, SystemChoice& choice) {
  const Index n = p.system.n, d = p.system.d;
  const Index most = choice.preconditioning.rank.value_or(inference::kAdaptiveMaxRank);
  const auto ranks = inference::adaptive_ranks(n, most);
  const Index largest =
      std::max(ranks.front(), inference::affordable_rank(n, d, most, p.free_bytes - other_bytes));
  choice.preconditioning.rank = largest;
  Index expected = ranks.front();
  for (const Index rank : ranks)
    if (rank <= largest && 4 * rank <= preconditioners::default_rank(n)) expected = rank;
  Preconditioning out;
  out.cost = inference::adaptive_cost(n, d, expected, inference::kAdaptiveNeighbours);
  out.bytes = std::max(out.cost.bytes, out.cost.peak_bytes);
  out.largest_bytes =
      inference::adaptive_cost(n, d, largest, inference::kAdaptiveMostNeighbours).peak_bytes;
  return out;
}

// `auto` of B is of low rank, the largest that fits beside the rest; none of a useful rank:
// nothing.
std::optional<Preconditioning> low_rank(const Setting& p, double other_bytes,
                                        SystemChoice& choice) {
  const auto& s = p.system;
  Index rank = inference::laplace_rank(s.n, choice.preconditioning.rank.value_or(kMostLaplaceRank));
  if (s.functions.coupled) rank = inference::CoupledLowRank::rank_for(s.functions.count, rank);
  // Bytes of coupled functions grow with the square of the rank.
  const auto bytes = [&] { return IterativeLaplaceSystem::low_rank_bytes(s.n, s.functions, rank); };
  while (rank >= kLeastRank && other_bytes + bytes() > p.free_bytes) --rank;
  if (rank < kLeastRank) return {};
  choice.preconditioning.rank = rank;
  preconditioners::PreconditionerOptions options;
  options.rank = rank;
  Preconditioning out;
  out.cost = preconditioners::rpcholesky_info().cost(s.n, s.d, options);
  out.bytes = bytes();
  return out;
}

// One for every function of B, which are independent, each built beside those before it.
Preconditioning named(const Setting& p, const SystemChoice& choice) {
  Preconditioning out;
  out.cost = preconditioners::preconditioner(choice.preconditioner)
                 .cost(p.system.n, p.system.d, choice.preconditioning);
  out.bytes = std::max(out.cost.bytes, out.cost.peak_bytes);
  if (!p.curved()) return out;
  const auto count = static_cast<double>(p.system.functions.count);
  out.bytes += (count - 1) * out.cost.bytes;
  out.cost.kernel_values *= count;
  out.cost.products *= count;
  out.cost.build_flops *= count;
  out.cost.thin_flops *= count;
  return out;
}

// Beside the operator and the preconditioner: right-hand sides, solutions, residuals and the
// workspace of the solver.
double vector_bytes(const Setting& p, const SystemSolver& solver, const SystemChoice& choice) {
  const auto& s = p.system;
  if (!p.curved())
    return solver.bytes(s.n, s.columns, choice.preconditioner != "none") +
           24.0 * static_cast<double>(s.n) * static_cast<double>(s.columns);
  if (p.predicts()) return s.draws * CoupledQuery::draw_bytes(s.n, s.functions.count);
  return IterativeLaplaceSystem::vector_bytes(s.n, s.functions, s.columns) +
         (solver.solve != nullptr ? solver.bytes(s.n, s.functions.count, false) : 0.0);
}

// Test rows of coupled functions that are solved for together: half of the memory that is left.
Index coupled_block(const Setting& p, double other_bytes) {
  const double each = CoupledQuery::row_bytes(p.system.n, p.system.functions.count);
  return std::clamp<Index>(static_cast<Index>(0.5 * (p.free_bytes - other_bytes) / each), 1,
                           kCoupledIterativeBlock);
}

// Products of the whole, in blocks of product_columns().
double guessed_products(const Setting& p, double iterations) {
  const auto& s = p.system;
  if (p.curved() && p.predicts())
    return (s.rows * static_cast<double>(s.functions.count) + s.draws) * kProductsOfCovariance;
  if (p.curved()) return kProductsOfMode;
  if (p.predicts())
    return std::ceil((s.rows + s.draws) / static_cast<double>(s.columns)) * iterations;
  return iterations;
}

// Nothing when B has memory for no preconditioner that is worth having.
std::optional<Candidate> iterative_candidate(const Setting& p, SystemChoice choice) {
  const auto& s = p.system;
  const auto solver = inference::solver(choice.solver);
  Candidate c;
  c.row.method = fmt::format("{} {} {}, {}", choice.solver, choice.op, to_string(choice.precision),
                             choice.preconditioner);
  c.row.bytes =
      inference::operator_bytes(s.n, s.d, p.product_columns(), choice.op, choice.precision) +
      vector_bytes(p, solver, choice);
  const double iterations = guessed_iterations(s, choice), other_bytes = c.row.bytes;
  double build = inference::operator_build_seconds(p.speed, s.n, choice.op, choice.precision);
  double per_product = p.product_seconds(choice, p.timed_columns());
  std::optional<Preconditioning> preconditioning;
  // What a solver of its own finds is only the mode: the rest is solved for with `auto`.
  const bool beside = p.curved() && solver.solve != nullptr;
  if (p.curved() && (choice.preconditioner == "auto" || beside)) {
    preconditioning = low_rank(p, other_bytes, choice);
    if (!preconditioning && !beside) return {};
  } else if (choice.preconditioner == "auto") {
    preconditioning = adaptive(p, other_bytes, choice);
  } else if (choice.preconditioner != "none") {
    preconditioning = named(p, choice);
  }
  if (preconditioning) {
    const double product = p.product_seconds(choice, 1);
    c.row.bytes += preconditioning->bytes;
    build += inference::build_seconds(p.speed, preconditioning->cost, product);
    per_product +=
        inference::apply_seconds(p.speed, preconditioning->cost, product, p.timed_columns());
  }
  if (p.curved() && p.predicts()) {
    c.block = coupled_block(p, c.row.bytes);
    c.row.bytes += static_cast<double>(c.block) * CoupledQuery::row_bytes(s.n, s.functions.count);
  } else {
    c.block = kIterativeBlock;
  }
  const double products = guessed_products(p, iterations);
  c.row.build_seconds = build;
  c.row.seconds = build + products * per_product;
  c.row.note = p.curved() ? fmt::format("about {:.0f} products", products)
                          : fmt::format("about {:.0f} iterations", iterations);
  if (preconditioning && preconditioning->largest_bytes)
    c.row.note += fmt::format(", up to {} if a larger rank pays",
                              format_bytes(other_bytes + *preconditioning->largest_bytes));
  c.row.allowed = asked(p.method.solver, choice.solver) && asked(p.method.op, choice.op) &&
                  asked(p.method.precision, to_string(choice.precision)) &&
                  asked(p.method.preconditioner, choice.preconditioner);
  c.choice = std::move(choice);
  return c;
}

// Asked for, or one that `auto` may take and the mathematics allows.
bool may_use(const operators::OperatorInfo& op, const Setting& p) {
  return p.method.op == op.name ||
         (op.automatic.allowed &&
          operators::refusal(op, p.system.kernel, p.system.n, p.system.d).empty());
}

// The iterative solver, of those that are asked for or of krylov, and the preconditioners for it.
struct Iterative {
  SystemSolver solver;
  std::vector<std::string> preconditioners;
};

Iterative iterative_of(const MethodOptions& method) {
  std::vector<std::string> names = {"auto", "none"};
  if (method.preconditioner != "auto") names = {method.preconditioner};
  if (method.solver != "auto") {
    const auto given = inference::solver(method.solver);
    if (given.solve != nullptr) return {given, {"none"}};
    // `auto` changes P on the way, which an unbiased solver does not allow.
    if (given.unbiased && method.preconditioner == "auto") return {given, {"none"}};
  }
  return {inference::solver(iterative_solver(method.solver, names.front())), names};
}

bool considers(const Setting& p, const SystemSolver& solver, const operators::OperatorInfo& op,
               SolvePrecision precision) {
  if (solver.double_only) return precision == SolvePrecision::float64;
  // Single precision cannot promise a tolerance: only on request.
  if (precision == SolvePrecision::float32 && p.method.precision != "single") return false;
  return precision == SolvePrecision::mixed || p.method.precision != "auto" || !op.keeps_matrix;
}

std::vector<Candidate> candidates(const Setting& p) {
  SystemChoice base;
  base.tolerance = p.method.tolerance;
  base.max_iterations = p.method.max_iterations;
  std::vector<Candidate> out = {direct_candidate(p, base)};
  const auto [solver, names] = iterative_of(p.method);
  base.solver = solver.name;
  base.random_stop = random_stop_for(base.solver, p.method);
  if (p.predicts() && !p.curved())
    base.expected_solves =
        std::ceil((p.system.rows + p.system.draws) / static_cast<double>(p.system.columns));
  for (const auto& op : operators::operators()) {
    if (!may_use(op, p)) continue;
    for (const auto precision :
         {SolvePrecision::mixed, SolvePrecision::float64, SolvePrecision::float32}) {
      if (!considers(p, solver, op, precision)) continue;
      for (const auto& name : names) {
        base.op = op.name;
        base.precision = precision;
        base.preconditioner = name;
        base.preconditioning = preconditioning_for(name, p.method);
        if (auto c = iterative_candidate(p, base)) out.push_back(std::move(*c));
      }
    }
  }
  return out;
}

// Seconds for comparing: an operator states how clearly it must pay before `auto` takes it.
// `auto` begins with plain iterations, so they alone are taken only where nothing else fits.
double handicapped_seconds(const Candidate& c, const MethodOptions& method) {
  if (method.preconditioner == "auto" && c.choice.preconditioner == "none" && !c.choice.direct())
    return 1e30 + c.nominal_seconds;
  if (c.choice.direct() || method.op == c.choice.op) return c.nominal_seconds;
  const auto& rule = operators::operators().find(c.choice.op).automatic;
  return c.row.bytes > rule.most_bytes ? HUGE_VAL : rule.least_gain * c.nominal_seconds;
}

// A mode of many rows is found by solves, unless the user wants factors.
bool too_many_to_factor(const System& system, const MethodOptions& method) {
  return system.form == SystemForm::curved && system.purpose == PlanFor::solve &&
         system.n > kAlwaysDirect && method.solver == "auto";
}

Candidate* best_candidate(std::vector<Candidate>& all, const System& system,
                          const MethodOptions& method) {
  Candidate* best = nullptr;
  for (auto& c : all) {
    if (!c.row.fits || !c.row.allowed) continue;
    if (c.choice.direct()) {
      if (system.n <= kAlwaysDirect) return &c;
      if (too_many_to_factor(system, method)) continue;
    }
    if (best == nullptr || handicapped_seconds(c, method) < handicapped_seconds(*best, method))
      best = &c;
  }
  return best;
}

// All of them with both their speeds.
std::vector<Candidate> considered(const System& system, const MethodOptions& method,
                                  const Plan& plan) {
  Setting p{system, method, plan.calibration, plan.budget_bytes - plan.base_bytes};
  auto all = candidates(p);
  p.speed = inference::nominal_speeds(system.kernel, system.d);
  const auto nominal = candidates(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].nominal_seconds = nominal[i].row.seconds;
    all[i].row.fits = plan.base_bytes + all[i].row.bytes <= plan.budget_bytes;
    all[i].row.stage = p.predicts() ? "predict" : "solve";
  }
  return all;
}

std::string why(const Candidate& best, std::size_t allowed, const Plan& plan) {
  if (allowed == 1) return "the only method that the options allow";
  if (best.choice.direct() && plan.n <= kAlwaysDirect)
    return "a factorisation of so few rows takes about a second";
  return "the quickest that fits, by estimate";
}

// Krylov methods take every operator, precision and preconditioner: only a factorisation is choosy.
std::string conflict(const MethodOptions& method) {
  std::vector<std::string> others;
  if (!allows_factor(method.op)) others.push_back(fmt::format("`operator={}`", method.op));
  if (!asked(method.precision, "double"))
    others.push_back(fmt::format("`precision={}`", method.precision));
  if (!asked(method.preconditioner, "none"))
    others.push_back(fmt::format("`preconditioner={}`", method.preconditioner));
  if (!inference::is_cholesky(method.solver) || others.empty())
    return "no method allows this combination of `solver`, `operator`, `precision` and "
           "`preconditioner`; leave one of them out";
  return fmt::format(
      "`solver={}` stores the matrix and factors it in double precision, without a "
      "preconditioner; leave out {}, or choose another `solver`",
      method.solver, fmt::join(others, " and "));
}

}  // namespace

void refuse(const Plan& plan, const std::vector<PlanRow>& rows, const std::string& what,
            const MethodOptions& method, double bytes_after) {
  const PlanRow* least = nullptr;
  for (const auto& row : rows)
    if (row.allowed && (least == nullptr || row.bytes < least->bytes)) least = &row;
  if (least == nullptr) throw InvalidArgument(conflict(method));
  const double needed = plan.base_bytes + std::max(least->bytes, bytes_after);
  throw DoesNotFit(fmt::format(
      "{} of {} rows does not fit into {}; the smallest is {} ({}){}, so `memory={:.0f}M` would do",
      what, count_text(plan.n), format_bytes(plan.budget_bytes), least->method,
      format_bytes(plan.base_bytes + least->bytes),
      bytes_after > least->bytes
          ? fmt::format(", and the solve after it needs {}", format_bytes(needed))
          : "",
      std::ceil(needed * 1.05 / 1048576)));
}

System posterior_system(const inference::Problem& problem, double noise,
                        const inference::Observations& rows, Index columns) {
  const Index sample = std::min<Index>(rows.size(), 1000), d = rows.x.cols();
  return {.kernel = problem.kernel,
          .n = rows.size(),
          .d = d,
          .noise = noise,
          .prior_variance = problem.kernel.diagonal(rows.x.topRows(sample)).mean(),
          .form = problem.gaussian() ? SystemForm::shifted : SystemForm::curved,
          .functions = {rows.functions(), problem.likelihood->coupled() != nullptr},
          .columns = 1 + inference::mean_basis_size(problem.mean, d) + columns};
}

namespace {

// Of those that the options allow.
const Candidate& smallest(const std::vector<Candidate>& all, const MethodOptions& method) {
  const Candidate* least = nullptr;
  for (const auto& c : all)
    if (c.row.allowed && (least == nullptr || c.row.bytes < least->row.bytes)) least = &c;
  if (least == nullptr) throw InvalidArgument(conflict(method));
  return *least;
}

}  // namespace

Candidate choose(const System& system, const MethodOptions& method, const Plan& plan) {
  auto all = considered(system, method, plan);
  if (Candidate* best = best_candidate(all, system, method)) return *best;
  return smallest(all, method);
}

double least_bytes(const System& system, const MethodOptions& method, const Plan& plan) {
  return smallest(considered(system, method, plan), method).row.bytes;
}

double plan_system(const System& system, const MethodOptions& method, Plan& plan) {
  auto all = considered(system, method, plan);
  const Candidate* best = best_candidate(all, system, method);
  std::vector<PlanRow> rows;
  for (auto& c : all) {
    c.row.chosen = &c == best;
    // A row ruled out by the user's own options only clutters the table.
    if (c.row.allowed) rows.push_back(c.row);
  }
  const bool predicts = system.purpose == PlanFor::predict;
  if (best == nullptr) refuse(plan, rows, predicts ? "prediction" : "a solve", method);
  plan.system = best->choice;
  plan.seconds += best->row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + best->row.bytes);
  plan.variance_block = best->block;
  plan.reason += fmt::format("{} solves by {}: {}.", predicts ? "Prediction" : "The run",
                             best->row.method, why(*best, rows.size(), plan));
  if (system.form == SystemForm::curved && method.preconditioner == "auto" &&
      !best->choice.direct() && best->choice.preconditioner == "none" &&
      inference::solver(best->choice.solver).takes_preconditioner)
    plan.reason += " Without a preconditioner: none of a useful rank is affordable.";
  plan.rows.insert(plan.rows.end(), rows.begin(), rows.end());
  return best->nominal_seconds;
}

}  // namespace mercer::planning
