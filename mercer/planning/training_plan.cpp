#include "mercer/planning/training_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/training/rules.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

using inference::SolvePrecision;
using inference::SystemChoice;

// Hyperparameters learned on fewer rows than this are not worth having.
constexpr Index kLeastSubset = 100, kMostSubset = 4000;
// A way to learn that would take longer than this is taken only where no other is quicker; and what
// exact gradients by solves may take of it, unless the user says how many products.
constexpr double kLongestLearning = 3600, kLongestGradients = 1800;
// Levels of gradients by solves: rows of the next over those of the last, and the fewest.
constexpr Index kLevelRatio = 4, kLeastLevel = 2000;
// Gradients on each level but the last, and on that.
constexpr double kGradientsOnLevel = 3, kGradientsOnLast = 2;
// With a likelihood that is not Gaussian, an exact evidence may take so long by estimate while
// learning on all rows, and on those that learning by solves begins with.
constexpr double kLongEvaluation = 2.0, kShortEvaluation = 0.5;
constexpr Index kMostExactRows = 4000;

// What learning usually takes, by likelihood: rows of the first exact searches (and from how many
// rows on they are worth it), their evaluations per start and in all, evaluations on more rows,
// gradients by solves.
struct Habits {
  Index first_rows, first_rows_from, rows_before_solves;
  double evaluations_per_start, evaluations_in_all, evaluations_on_more, gradients,
      surrogate_evaluations;
};
constexpr Habits kGaussianHabits{750, 1001, 1000, 8, 20, 8, 5, 60};
constexpr Habits kLaplaceHabits{500, 501, 0, 0, 40, 4, 4, 0};

// Everything that the ways to learn depend on.
struct Learning {
  const inference::Problem& problem;
  double noise;
  const inference::Observations& all;
  const MethodOptions& method;
  const TrainOptions& train;
  const Plan& plan;
  Index n, d;
  inference::FunctionCount functions;
  inference::Speeds speed;

  const Habits& habits() const { return problem.gaussian() ? kGaussianHabits : kLaplaceHabits; }
  std::string_view evidence(inference::EvidenceBy by) const {
    return inference::evidence_method(problem, by);
  }
  std::string_view exact() const { return evidence(inference::EvidenceBy::factorisation); }
  Learning at_nominal_speed() const {
    auto out = *this;
    out.speed = inference::nominal_speeds(problem.kernel, d);
    return out;
  }
  /// Of one evaluation with its gradient on so many rows.
  inference::EvaluationCost cost(std::string_view inference, Index rows,
                                 const SystemChoice& system = {},
                                 std::optional<Index> neighbours = {}) const {
    return inference::methods().find(inference).cost(
        {.n = rows,
         .d = d,
         .functions = functions,
         .columns = 1 + inference::mean_basis_size(problem.mean, d),
         .parameters = problem.kernel.num_parameters(),
         .probes = train.probes,
         .system = system,
         .speed = speed,
         .neighbours = neighbours});
  }
  double exact_seconds(Index rows) const { return cost(exact(), rows).seconds; }
  double first_evaluations() const {
    return habits().evaluations_in_all + habits().evaluations_per_start * (1 + train.restarts);
  }
};

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

// Products of all rows that one gradient on a level usually takes.
double products_of_gradient(const Learning& p, const SystemChoice& system, Index level,
                            Index rows) {
  const double share = static_cast<double>(level) / static_cast<double>(rows);
  const Index columns =
      p.functions.count * (1 + inference::mean_basis_size(p.problem.mean, p.d) + p.train.probes);
  if (p.problem.gaussian())
    return share * share * training::usual_products(static_cast<double>(columns));
  const auto nominal = p.at_nominal_speed();
  const double product =
      inference::product_seconds(nominal.speed, rows, system.op, system.precision, columns) /
      static_cast<double>(columns);
  return nominal.cost(p.evidence(inference::EvidenceBy::solves), level, system).seconds / product;
}

// The levels of gradients by solves, in order, and what they take.
struct SolveLevels {
  std::vector<Index> fewer;  // before all rows
  Index gradient_rows = 0;   // of the largest level that the budget usually lasts for; 0: none
  double seconds = 0;        // of all gradients
  std::optional<Index> budget;
};

// Rows of the levels: all, a quarter of them, and so on. A quarter that is not much more than what
// is factored in a second becomes that.
std::vector<Index> levels_by_solves(Index rows, Index before) {
  Index n = rows / kLevelRatio;
  if (n < 2 * training::kFactoredLevel) n = std::min(training::kFactoredLevel, rows / 2);
  std::vector<Index> out;
  for (; n >= std::max(kLeastLevel, before); n /= kLevelRatio) out.insert(out.begin(), n);
  return out;
}

// As many products as take so long on a typical machine: no choice may depend on the clock.
Index usual_budget(const Learning& p, const SystemChoice& system, Index rows) {
  const auto nominal = p.at_nominal_speed();
  const Index columns = 1 + p.train.probes;
  const double product =
      inference::product_seconds(nominal.speed, rows, system.op, system.precision, columns) /
      static_cast<double>(columns);
  return std::max<Index>(1, static_cast<Index>(std::min(1e9, kLongestGradients / product)));
}

SolveLevels plan_levels(const Learning& p, const SystemChoice& system, Index rows, Index before) {
  SolveLevels out;
  out.fewer = levels_by_solves(rows, before);
  out.budget = p.train.budget;
  // The Vecchia likelihood goes on where a budget ends; other likelihoods have no such thing.
  if (!out.budget && p.problem.gaussian()) out.budget = usual_budget(p, system, rows);
  auto all = out.fewer;
  all.push_back(rows);
  double spent = 0;
  for (const Index level : all) {
    const double one = products_of_gradient(p, system, level, rows);
    const double most =
        out.budget ? std::floor((static_cast<double>(*out.budget) - spent) / one) : HUGE_VAL;
    const double count = std::min(level == rows ? kGradientsOnLast : kGradientsOnLevel, most);
    if (count < 1) break;
    spent += count * one;
    out.gradient_rows = level;
    out.seconds += count * p.cost(p.evidence(inference::EvidenceBy::solves), level, system).seconds;
  }
  return out;
}

// What is exact in learning in levels, and what is not.
std::string levels_text(const SolveLevels& levels, Index rows) {
  if (levels.gradient_rows == 0)
    return fmt::format(
        "the Vecchia likelihood alone: the budget of {} does not last for one gradient",
        plural(*levels.budget, "product"));
  if (levels.gradient_rows < rows)
    return fmt::format(
        "the Vecchia likelihood, corrected by exact gradients on random {} rows: a budget of {} "
        "does not last for gradients on all",
        count_text(levels.gradient_rows), plural(*levels.budget, "product"));
  if (levels.fewer.empty()) return "exact gradients from solves";
  return fmt::format("exact gradients from solves, begun on random {} rows",
                     count_text(levels.fewer.front()));
}

// The same of a likelihood that is not Gaussian: begun exactly on 500, then on random 4,000 rows.
std::string laplace_levels_text(const Way& w, const SolveLevels& levels) {
  std::string text;
  if (!w.levels.empty()) text += fmt::format(", begun exactly on {}", count_text(w.levels.back()));
  std::vector<std::string> parts;
  for (const Index rows : levels.fewer) parts.push_back(count_text(rows));
  if (!parts.empty())
    text += fmt::format(", {} on random {}", w.levels.empty() ? "begun" : "then",
                        fmt::join(parts, " and "));
  if (levels.budget && levels.gradient_rows < w.rows)
    text += levels.gradient_rows == 0
                ? fmt::format("; the budget of {} does not last for one gradient",
                              plural(*levels.budget, "product"))
                : fmt::format("; a budget of {} ends it on {} of them",
                              plural(*levels.budget, "product"), count_text(levels.gradient_rows));
  return text;
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

// Which levels memory suffices to factor, beside what the surrogate takes. With a likelihood that
// is not Gaussian only those before the last ever are.
void add_factorisations(const Learning& p, double surrogate_bytes, Way& w) {
  auto all = w.solve_levels;
  if (p.problem.gaussian()) all.push_back(w.rows);
  for (const Index level : all) {
    const double bytes = surrogate_bytes + p.cost(p.exact(), level).bytes;
    if (p.plan.base_bytes + bytes > p.plan.budget_bytes) break;
    w.factorable_rows = level;
    if (level == w.rows)
      w.row.note += fmt::format("; up to {} if solves fail", format_bytes(bytes));
  }
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
  inference::EvaluationCost surrogate;
  if (entry.on_surrogate)
    surrogate =
        p.cost(p.evidence(inference::EvidenceBy::surrogate), rows, {},
               entry.in_levels ? std::optional(training::kCorrectedNeighbours) : std::nullopt);
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
  if (!p.problem.gaussian()) how = laplace_levels_text(w, levels);
  w.row.stage = "train";
  w.row.method = fmt::format("{} on {} rows, {}", trainer, count_text(rows),
                             surrogate_only         ? "Vecchia likelihood"
                             : p.problem.gaussian() ? "exact gradients by solves"
                                                    : "gradients by solves");
  w.row.seconds = seconds_of(p, w.levels) + gradient_seconds +
                  (entry.on_surrogate ? p.habits().surrogate_evaluations * surrogate.seconds : 0);
  w.row.bytes = surrogate.bytes + (surrogate_only ? 0 : gradient.bytes);
  if (!w.levels.empty())
    w.row.bytes = std::max(w.row.bytes, p.cost(p.exact(), w.levels.back()).bytes);
  // Vectors and the rank of Laplace's systems are counted where these are planned.
  w.row.bytes = std::max(w.row.bytes, system_bytes);
  w.row.note = surrogate_only ? fmt::format("{:.2g} s an evaluation", surrogate.seconds)
                              : fmt::format("{:.2g} s a gradient", gradient.seconds);
  if (entry.in_levels) add_factorisations(p, surrogate.bytes, w);
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
