// The posterior with Gaussian noise by the system that was chosen, factored or iterative.
#pragma once

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

/// Throws Interrupted.
Posterior gaussian_posterior(const Problem& problem, const Observations& rows,
                             const SystemChoice& system, std::uint64_t seed,
                             const PosteriorRequest& request, const ProgressCallback& progress);

}  // namespace mercer::inference
