#include "mercer/planning/level_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

using inference::SystemChoice;

// What exact gradients by solves may take in seconds, unless the user says how many products.
constexpr double kLongestGradients = 1800;
// Levels of gradients by solves: rows of the next over those of the last, and the fewest.
constexpr Index kLevelRatio = 4, kLeastLevel = 2000;
// Gradients on each level but the last, and on that.
constexpr double kGradientsOnLevel = 3, kGradientsOnLast = 2;

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

}  // namespace

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

std::string laplace_levels_text(const SolveLevels& levels, Index exact_rows, Index rows) {
  std::string text;
  if (exact_rows > 0) text += fmt::format(", begun exactly on {}", count_text(exact_rows));
  std::vector<std::string> parts;
  for (const Index level : levels.fewer) parts.push_back(count_text(level));
  if (!parts.empty())
    text += fmt::format(", {} on random {}", exact_rows == 0 ? "begun" : "then",
                        fmt::join(parts, " and "));
  if (levels.budget && levels.gradient_rows < rows)
    text += levels.gradient_rows == 0
                ? fmt::format("; the budget of {} does not last for one gradient",
                              plural(*levels.budget, "product"))
                : fmt::format("; a budget of {} ends it on {} of them",
                              plural(*levels.budget, "product"), count_text(levels.gradient_rows));
  return text;
}

}  // namespace mercer::planning
