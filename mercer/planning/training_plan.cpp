#include "mercer/planning/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/planning/level_plan.hpp"
#include "mercer/training/rules.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

using inference::SolvePrecision;
using inference::SystemChoice;

// Hyperparameters learned on fewer rows than this are not worth having.
constexpr Index kLeastSubset = 100, kMostSubset = 4000;
// A way to learn that would take longer than this is taken only where no other is quicker.
constexpr double kLongestLearning = 3600;
// With a likelihood that is not Gaussian, an exact evidence may take so long by estimate while
// learning on all rows, and on those that learning by solves begins with.
constexpr double kLongEvaluation = 2.0, kShortEvaluation = 0.5;
constexpr Index kMostExactRows = 4000;
// A gradient without noise may take so many times what one by solves does.
constexpr double kWorthNoNoise = 3;

Learning learning_of(const inference::Problem& problem, double noise,
                     const inference::Observations& rows, const MethodOptions& method,
                     const TrainOptions& train, const Plan& plan) {
  return {
      problem,         noise,         rows,
      method,          train,         plan,
      rows.size(),     rows.x.cols(), {rows.functions(), problem.likelihood->coupled() != nullptr},
      plan.calibration};
}

// One way to learn.
struct Way {
  PlanRow row;
  std::string trainer;
  Index rows = 0;
  std::vector<Index> levels;        // of exact searches
  std::vector<Index> solve_levels;  // of gradients by solves, before `rows`
  std::optional<Index> budget;      // of products that these may take
  Index factorable_rows = 0;        // memory suffices for factorisations of so many
  SystemChoice system;
  std::string reason;
  bool possible = true;
};

// Rows that an exact evidence takes so long for, on a typical machine.
Index exact_rows(const Learning& p, double seconds) {
  const double thousand = p.at_nominal_speed().exact_seconds(1000);
  return std::clamp<Index>(static_cast<Index>(1000 * std::cbrt(seconds / thousand)), 100,
                           kMostExactRows);
}

// The levels of exact searches that end on so many rows.
std::vector<Index> levels_to(const Learning& p, Index rows) {
  if (rows <= 0) return {};
  if (rows < p.habits().first_rows_from) return {rows};
  return {p.habits().first_rows, rows};
}

double seconds_of(const Learning& p, const std::vector<Index>& levels) {
  double seconds = 0;
  for (std::size_t i = 0; i < levels.size(); ++i)
    seconds += (i == 0 ? p.first_evaluations() : p.habits().evaluations_on_more) *
               p.exact_seconds(levels[i]);
  return seconds;
}

Way exact_way(const Learning& p, Index rows) {
  Way w;
  w.trainer = training::exact_trainer().name;
  w.rows = rows;
  w.levels = levels_to(p, rows);
  const auto which = fmt::format("{} {} rows", rows == p.n ? "all" : "random", count_text(rows));
  w.row.stage = "train";
  w.row.method =
      fmt::format("exact {}, {}", p.problem.gaussian() ? "likelihood" : "evidence", which);
  w.row.bytes = p.cost(p.exact(), rows).bytes;
  w.row.seconds = seconds_of(p, w.levels);
  w.row.note = fmt::format("{:.2g} s a gradient", p.exact_seconds(rows));
  w.reason = p.problem.gaussian()
                 ? fmt::format("Hyperparameters are learned on {} (exact likelihood). ", which)
                 : fmt::format("Learning maximises the exact Laplace evidence of {} rows. ",
                               count_text(rows));
  return w;
}

// The solves of learning with Gaussian noise: as the user asks, else conjugate gradients with
// float32 products.
SystemChoice gaussian_system(const Learning& p) {
  SystemChoice choice;
  const auto& method = p.method;
  choice.preconditioner = method.preconditioner;
  choice.preconditioning = preconditioning_for(choice.preconditioner, method);
  choice.solver = iterative_solver(method.solver, choice.preconditioner);
  choice.precision = method.precision == "double"   ? SolvePrecision::float64
                     : method.precision == "single" ? SolvePrecision::float32
                                                    : SolvePrecision::mixed;
  if (method.op != "auto") choice.op = method.op;
  choice.max_iterations = method.max_iterations;
  return choice;
}

// The solves of learning with another likelihood, on so many rows: as those of its posterior, with
// the probes beside them, and never by factors.
Candidate laplace_system(const Learning& p, Index rows) {
  auto system = posterior_system(p.problem, p.noise, p.all, p.train.probes);
  system.n = rows;
  auto method = p.method;
  method.solver = iterative_solver(method.solver, method.preconditioner);
  return choose(system, method, p.plan);
}

// Rows of exact searches before solves on so many.
Index rows_before_solves(const Learning& p, Index rows) {
  if (p.problem.gaussian()) return std::min(rows, p.habits().rows_before_solves);
  const double room = (p.plan.budget_bytes - p.plan.base_bytes) / p.cost(p.exact(), 1).bytes;
  const auto fits = static_cast<Index>(std::sqrt(std::max(0.0, room)));
  const Index start =
      std::min({exact_rows(p, kShortEvaluation), fits, rows, std::max(kLeastSubset, rows / 4)});
  return start < kLeastSubset ? 0 : start;
}

std::string reason_of_solves(const Learning& p, const Way& w, const std::string& how) {
  const auto& entry = training::trainers().find(w.trainer);
  const auto words = entry.words.empty() ? entry.name : entry.words;
  const auto which =
      fmt::format("{} {} rows", w.rows == p.n ? "all" : "random", count_text(w.rows));
  if (!p.problem.gaussian())
    return fmt::format("Learning is by {} on gradients by solves from {} rows{}. ", words,
                       count_text(w.rows), how);
  if (w.levels.empty()) return fmt::format("Hyperparameters are learned on {} by {}. ", which, how);
  return fmt::format("Hyperparameters are learned on {} rows by Cholesky, then on {} by {}. ",
                     count_text(w.levels.back()), which, how);
}

// Which levels memory suffices to factor, beside what the surrogate takes.
void add_factorisations(const Learning& p, double surrogate_bytes, Way& w) {
  auto all = w.solve_levels;
  all.push_back(w.rows);
  for (const Index level : all) {
    const double bytes = surrogate_bytes + p.cost(p.exact(), level).bytes;
    if (p.plan.base_bytes + bytes > p.plan.budget_bytes) break;
    w.factorable_rows = level;
    if (level == w.rows)
      w.row.note += fmt::format("; up to {} if solves fail", format_bytes(bytes));
  }
}

// The same with a likelihood that is not Gaussian: levels before the last, where a factorisation,
// which has no noise, takes little more than solves on a typical machine.
void add_laplace_factorisations(const Learning& p, Way& w) {
  const auto nominal = p.at_nominal_speed();
  for (const Index level : w.solve_levels) {
    const auto exact = nominal.cost(p.exact(), level);
    const auto solved = nominal.cost(p.evidence(inference::EvidenceBy::solves), level, w.system);
    if (level > training::kFactoredLevel || exact.seconds > kWorthNoNoise * solved.seconds ||
        p.plan.base_bytes + exact.bytes > p.plan.budget_bytes)
      break;
    w.factorable_rows = level;
    w.row.bytes = std::max(w.row.bytes, exact.bytes);
  }
}

// An evaluation of the surrogate that the trainer follows, if it does.
inference::EvaluationCost surrogate_cost(const Learning& p, const training::TrainerInfo& entry,
                                         Index rows) {
  if (!entry.on_surrogate) return {};
  return p.cost(p.evidence(inference::EvidenceBy::surrogate), rows, {},
                entry.in_levels ? std::optional(training::kCorrectedNeighbours) : std::nullopt);
}

// "lbfgs on 8,000 rows, exact gradients by solves".
std::string method_text(const Learning& p, const Way& w, bool surrogate_only) {
  return fmt::format("{} on {} rows, {}", w.trainer, count_text(w.rows),
                     surrogate_only         ? "Vecchia likelihood"
                     : p.problem.gaussian() ? "exact gradients by solves"
                                            : "gradients by solves");
}

Way solves_way(const Learning& p, Index rows, const std::string& trainer) {
  const auto& entry = training::trainers().find(trainer);
  Way w;
  w.trainer = trainer;
  w.rows = rows;
  double system_bytes = 0;
  if (p.problem.gaussian()) {
    w.system = gaussian_system(p);
  } else {
    auto found = laplace_system(p, rows);
    w.system = std::move(found.choice);
    system_bytes = found.row.bytes;
  }
  // What the user asks for begins where the papers do; a surrogate has nothing to add to an exact
  // optimum of the same rows.
  const Index before = rows_before_solves(p, rows);
  const bool surrogate_only = entry.surrogate_only;
  const bool from_start =
      (entry.from_start_values && p.train.train == trainer) || (surrogate_only && before == rows);
  if (!from_start) w.levels = p.problem.gaussian() ? std::vector{before} : levels_to(p, before);
  const auto gradient = p.cost(p.evidence(inference::EvidenceBy::solves), rows, w.system);
  const auto surrogate = surrogate_cost(p, entry, rows);
  const double gradients = surrogate_only               ? 0
                           : entry.gradients != nullptr ? entry.gradients(p.problem, p.train)
                                                        : p.habits().gradients;
  double gradient_seconds = gradients * gradient.seconds;
  std::string how(entry.words.empty() ? entry.name : entry.words);
  if (entry.takes_gradients()) {
    w.budget = p.train.budget;
    how = "exact gradients from solves";
  }
  SolveLevels levels;
  if (entry.in_levels) {
    levels = plan_levels(p, w.system, rows, before);
    w.solve_levels = levels.fewer;
    w.budget = levels.budget;
    gradient_seconds = levels.seconds;
    how = levels_text(levels, rows);
  }
  if (!p.problem.gaussian())
    how = laplace_levels_text(levels, w.levels.empty() ? 0 : w.levels.back(), rows);
  w.row.stage = "train";
  w.row.method = method_text(p, w, surrogate_only);
  w.row.seconds = seconds_of(p, w.levels) + gradient_seconds +
                  (entry.on_surrogate ? p.habits().surrogate_evaluations * surrogate.seconds : 0);
  w.row.bytes = surrogate.bytes + (surrogate_only ? 0 : gradient.bytes);
  if (!w.levels.empty())
    w.row.bytes = std::max(w.row.bytes, p.cost(p.exact(), w.levels.back()).bytes);
  // Vectors and the rank of Laplace's systems are counted where these are planned.
  w.row.bytes = std::max(w.row.bytes, system_bytes);
  w.row.note = surrogate_only ? fmt::format("{:.2g} s an evaluation", surrogate.seconds)
                              : fmt::format("{:.2g} s a gradient", gradient.seconds);
  if (entry.in_levels && p.problem.gaussian()) add_factorisations(p, surrogate.bytes, w);
  if (entry.in_levels && !p.problem.gaussian()) add_laplace_factorisations(p, w);
  w.reason = reason_of_solves(p, w, how);
  return w;
}

// Which trainer goes by solves: the one asked for, else the one that `auto` likes best of those
// that do not take too long on a typical machine. None when the user wants exact evidences that
// only factorisations give.
std::string trainer_by_solves(const Learning& p, Index rows) {
  const auto& asked = p.train.train;
  const auto suits = [&](const training::TrainerInfo& trainer) {
    return trainer.by_solves && trainer.refusal(p.problem).empty();
  };
  if (asked != "auto") return suits(training::trainers().find(asked)) ? asked : "";
  std::string best;
  double best_rank = -HUGE_VAL;
  for (const auto& trainer : training::trainers()) {
    const int preference = trainer.preference(p.problem);
    if (preference == 0 || !suits(trainer)) continue;
    const std::string name(trainer.name);
    const double seconds = solves_way(p.at_nominal_speed(), rows, name).row.seconds;
    // Of those that take too long, the quickest.
    const double rank = seconds <= kLongestLearning ? preference : -seconds;
    if (rank > best_rank) {
      best = name;
      best_rank = rank;
    }
  }
  return best;
}

// Above a few thousand rows, a few gradients by solves take less than many by Cholesky.
bool exact_pays(const Learning& p, Index rows) {
  if (p.problem.gaussian()) return rows <= kAlwaysDirect || inference::is_cholesky(p.method.solver);
  return p.train.train != "auto" || p.train.subset || rows <= exact_rows(p, kLongEvaluation);
}

// Rows that a factorisation has memory for, at most so many.
Index rows_that_fit(const Learning& p, Index most) {
  const double bytes = std::max(0.0, p.plan.budget_bytes - p.plan.base_bytes);
  const double affordable = std::sqrt(bytes / p.cost(p.exact(), 1).bytes);
  return std::min(most,
                  std::clamp(static_cast<Index>(affordable * 0.95), kLeastSubset, kMostSubset));
}

// Exact evidences may be asked for by the name of a trainer that climbs them, or left to the plan.
bool exact_allowed(const TrainOptions& train) {
  return train.train == "auto" || training::trainers().find(train.train).also_exact;
}

void take(Way& w, Plan& plan) {
  w.row.chosen = true;
  plan.trains = true;
  plan.train_method = w.trainer;
  plan.train_rows = w.rows;
  plan.train_levels = w.levels;
  plan.solve_levels = w.solve_levels;
  plan.train_budget = w.budget;
  plan.factorable_rows = w.factorable_rows;
  plan.train_by_solves = training::trainers().find(w.trainer).by_solves;
  plan.start_rows = plan.train_by_solves  ? (w.levels.empty() ? 0 : w.levels.back())
                    : w.levels.size() > 1 ? w.levels.front()
                                          : 0;
  plan.train_system = w.system;
  plan.reason = w.reason + plan.reason;
  plan.seconds += w.row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + w.row.bytes);
}

}  // namespace

void plan_training(const inference::Problem& problem, double noise,
                   const inference::Observations& rows, const MethodOptions& method,
                   const TrainOptions& train, double bytes_after, Plan& plan) {
  if (training::trainers().contains(train.train))
    if (const auto why = training::trainers().find(train.train).refusal(problem);
        !why.empty() && !exact_allowed(train))
      throw InvalidArgument(why);
  const auto p = learning_of(problem, noise, rows, method, train, plan);
  const Index wanted = std::min(p.n, train.subset.value_or(p.n));
  const Index fewer = rows_that_fit(p, wanted);
  std::vector<Way> ways;
  const auto add = [&](Way w, bool pays) {
    w.row.fits = plan.base_bytes + w.row.bytes <= plan.budget_bytes;
    w.possible = w.row.fits && pays;
    ways.push_back(std::move(w));
  };
  const std::string trainer = trainer_by_solves(p, wanted);
  if (exact_allowed(train)) add(exact_way(p, wanted), exact_pays(p, wanted) || trainer.empty());
  if (!trainer.empty()) add(solves_way(p, wanted, trainer), true);
  if (exact_allowed(train) && fewer < wanted) {
    auto subset = exact_way(p, fewer);
    subset.reason = fmt::format(
        "Hyperparameters are learned on {} random rows, because more do not fit into memory. ",
        count_text(fewer));
    add(std::move(subset), true);
  }
  // With "auto" the rank is what a hybrid may have beside the rest; 0: none is built.
  for (auto& w : ways)
    if (problem.gaussian() && w.system.preconditioner == "auto")
      w.system.preconditioning.rank = inference::affordable_rank(
          wanted, p.d, w.system.preconditioning.rank.value_or(inference::kAdaptiveMaxRank),
          plan.budget_bytes - plan.base_bytes - w.row.bytes);
  const auto chosen =
      std::find_if(ways.begin(), ways.end(), [](const Way& w) { return w.possible; });
  if (chosen != ways.end()) take(*chosen, plan);
  std::vector<PlanRow> table;
  table.reserve(ways.size());
  for (const auto& w : ways) table.push_back(w.row);
  if (chosen == ways.end()) refuse(plan, table, "learning", method, bytes_after);
  plan.rows.insert(plan.rows.begin(), table.begin(), table.end());
}

StartLevels plan_start(const inference::Problem& problem, double noise,
                       const inference::Observations& rows, const MethodOptions& method,
                       const TrainOptions& train, Index learned_rows, const Plan& plan) {
  const auto p = learning_of(problem, noise, rows, method, train, plan);
  StartLevels out;
  out.levels = levels_to(p, rows_before_solves(p, learned_rows));
  out.seconds = seconds_of(p, out.levels);
  if (!out.levels.empty()) out.bytes = p.cost(p.exact(), out.levels.back()).bytes;
  return out;
}

}  // namespace mercer::planning
