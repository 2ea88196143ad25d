// The log marginal likelihood of what was learned: by Cholesky, or from products with an interval.
//   Cost: a factorisation (N^3 flops); or some twenty block products with all rows.
#pragma once

#include <cstdint>

#include "mercer/core/progress.hpp"
#include "mercer/inference/evidence.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/log_determinant.hpp"

namespace mercer::inference {

/// The likelihood of a problem whose H was factored: no further factorisation, no gradient.
LikelihoodValue factored_likelihood(const Problem& problem, const Observations& data,
                                    const Weights& weights, double log_det);

/// The likelihood with its gradient by Cholesky, factored anew; unknown when H is not positive
/// definite.
LikelihoodValue evaluate_likelihood(const Problem& problem, const Observations& data);

/// The likelihood of a problem that was solved iteratively, with an interval: the quadratic term
/// from its weights, log|H| by Lanczos quadrature. Unknown where it would take too long.
LikelihoodValue estimate_likelihood(const Problem& problem, const Observations& data,
                                    const Weights& weights, std::uint64_t seed,
                                    const ProgressCallback& progress);

/// rest - log|.|/2 with its 95 % interval, from a log determinant by so many probes. `unsolved`: an
/// upper bound of the error of the quadratic form in the rest, from the residual of its solve.
LikelihoodValue lanczos_likelihood(double rest, const LogDeterminant& log_det, Index probes,
                                   double unsolved = 0);

}  // namespace mercer::inference
