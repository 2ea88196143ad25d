// Solutions of H x = b that are right on average, two independent ones from each run, for gradients
// that are linear and quadratic in them (krylov/ulisse.hpp).
//   Source: Filippone & Engler (2015).
//   Cost:   conjugate gradients to the early tolerance and a few steps more; one product for the
//           residuals of the solutions, where they are measured.
//   Means:  with products in double or mixed precision they have the residual of the tolerance, in
//           double. With products in float32 alone they solve the system that float32 makes of H:
//           rounding is a bias that no draw removes.
#pragma once

#include <string>

#include "mercer/inference/system.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// Where draws begin: |b - H x| <= min(0.01, 1 / sqrt(N)) |b|. The terms of the gradient grow as N,
/// its standard deviation under the posterior as sqrt(N), so that the noise of the stops stays a
/// bounded part of the latter.
double early_tolerance(Index n);

/// Why no solution with this choice can be right on average; empty when it can.
std::string unbiased_refusal(const SystemChoice& choice);

struct UnbiasedSolutions {
  Matrix first, second;  // given the first guess independent, with equal means
  Matrix last_iterate;   // of the run: the first guess of the next solve
  SystemReport report;   // residuals are those of `first`, unless they are not to be measured
};

struct UnbiasedRequest {
  double tolerance = 1e-6;  // of the means
  krylov::RandomStopOptions stop = {};
};

/// `start` is the first guess, N x t. The system has no Adaptive: P may not change on the way.
/// Throws InvalidArgument with the refusal.
UnbiasedSolutions solve_unbiased(const IterativeSystem& system, ConstMatrixView b, Matrix start,
                                 const UnbiasedRequest& request, const Observer& observer = {});

}  // namespace mercer::inference
MERCER_API_END
