// Exact evidences of small problems by factorisation, for tests of training.
#pragma once

#include "mercer/inference/inference.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/training/rules.hpp"

namespace mercer::testing {

inline double exact_value(const inference::Observations& rows, const inference::Problem& at) {
  return inference::make(inference::evidence_method(at, inference::EvidenceBy::factorisation), at,
                         {.rows = rows})
      ->evaluate(at, {.gradient = false})
      .value;
}

/// Climbed from `from`, within the bounds of `start`: the maximum that is near.
inline double exact_optimum(const inference::Problem& start, const inference::Observations& rows,
                            const inference::Problem& from) {
  auto problem = from;
  const auto method =
      inference::make(inference::evidence_method(problem, inference::EvidenceBy::factorisation),
                      problem, {.rows = rows});
  const auto result = optim::lbfgs(
      [&](ConstVectorView theta, VectorView gradient) {
        problem.set_log_parameters(theta);
        const auto e = method->evaluate(problem, {});
        gradient = -e.gradient;
        return -e.value;
      },
      from.log_parameters(), training::bounds(start, rows));
  return -result.value;
}

}  // namespace mercer::testing
