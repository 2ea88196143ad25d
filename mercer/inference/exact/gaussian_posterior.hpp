// The posterior with Gaussian noise by the system that was chosen, factored or iterative.
#pragma once

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

/// Throws Interrupted. `solution`, where not null, is about H^-1 [y, basis] or empty, where
/// iterations begin, and holds it in the end.
Posterior gaussian_posterior(const Problem& problem, const Observations& rows,
                             const SystemChoice& system, std::uint64_t seed,
                             const PosteriorRequest& request, const ProgressCallback& progress,
                             Matrix* solution = nullptr);

}  // namespace mercer::inference
