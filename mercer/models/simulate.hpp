// Draws from a Gaussian process with known hyperparameters: data whose truth is known.
//   Cost: exact by Cholesky, 8 n^2 bytes and n^3/3 flops; throws DoesNotFit beyond the budget.
#pragma once

#include <cstdint>

#include "mercer/inference/exact_evidence.hpp"

namespace mercer::models {

struct Draw {
  Vector latent;  // f(x)
  Vector target;  // f(x) + noise
};

Draw draw_from_gp(const inference::Problem& problem, ConstMatrixView x, std::uint64_t seed,
                  std::uint64_t memory_bytes);

}  // namespace mercer::models
