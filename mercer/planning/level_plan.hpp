// What planning of learning knows (used by training_plan.cpp), and the levels of gradients by
// solves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/inference/inference.hpp"
#include "mercer/planning/training_plan.hpp"

namespace mercer::planning {

// What learning usually takes, by likelihood: rows of the first exact searches (and from how many
// rows on they are worth it), their evaluations per start and in all, evaluations on more rows,
// gradients by solves.
struct Habits {
  Index first_rows, first_rows_from, rows_before_solves;
  double evaluations_per_start, evaluations_in_all, evaluations_on_more, gradients,
      surrogate_evaluations;
};
inline constexpr Habits kGaussianHabits{750, 1001, 1000, 8, 20, 8, 5, 60};
inline constexpr Habits kLaplaceHabits{500, 501, 0, 0, 40, 4, 4, 0};

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
                                 const inference::SystemChoice& system = {},
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

// The levels of gradients by solves, in order, and what they take.
struct SolveLevels {
  std::vector<Index> fewer;  // before all rows
  Index gradient_rows = 0;   // of the largest level that the budget usually lasts for; 0: none
  double seconds = 0;        // of all gradients
  std::optional<Index> budget;
};

SolveLevels plan_levels(const Learning& p, const inference::SystemChoice& system, Index rows,
                        Index before);
/// What is exact in learning in levels, and what is not.
std::string levels_text(const SolveLevels& levels, Index rows);
/// The same of a likelihood that is not Gaussian, after `exact_rows` (0: none) of exact searches:
/// ", begun exactly on 500, then on random 4,000".
std::string laplace_levels_text(const SolveLevels& levels, Index exact_rows, Index rows);

}  // namespace mercer::planning
