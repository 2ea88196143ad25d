// The posterior of Laplace's approximation, from a mode that was found by any system.
#pragma once

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

struct FoundMode {
  LaplaceMode mode;
  std::unique_ptr<LaplaceSystem> system;  // its curvature is that of the mode
};

/// Dense with "cholesky", else iterative.
std::unique_ptr<LaplaceSystem> make_laplace_system(const Problem& problem, const Matrix& x,
                                                   const SystemChoice& choice);

/// Newton's method from `start`; with no step allowed the start is only measured. Throws
/// Interrupted.
FoundMode find_posterior_mode(const Problem& problem, const Observations& rows,
                              const SystemChoice& choice, LaplaceMode start,
                              const NewtonOptions& options, const ProgressCallback& progress);

/// Latent functions, certificate and, when asked for, the evidence by the system's log determinant.
Posterior laplace_posterior(const Problem& problem, const Observations& rows,
                            const FoundMode& found, const PosteriorRequest& request,
                            std::uint64_t seed, const ProgressCallback& progress);

}  // namespace mercer::inference
