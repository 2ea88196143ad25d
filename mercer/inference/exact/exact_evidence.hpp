// The log marginal likelihood of Gaussian-process regression and its gradient, by Cholesky.
//   L = -1/2 (y - A beta)' H^-1 (y - A beta) - 1/2 log|H| - N/2 log 2 pi,  H = K + D,
//   dL/dtheta = 1/2 w' dH w - 1/2 tr(H^-1 dH),  w = H^-1 (y - A beta),
// with D the noise of the rows (observations.hpp) and beta the generalised least-squares estimate
// (so L is the profile likelihood; by the envelope theorem its gradient has no term in beta).
//   Source: Rasmussen & Williams (2006), eqs. 5.8 and 5.9.
//   Cost:   N^3/3 flops for the value, N^3 with the gradient; 8 N^2 bytes in all.
#pragma once

#include "mercer/inference/evidence.hpp"
#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/inference/weights.hpp"
#include "mercer/linalg/cholesky.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// Of all rows, those that were merged into others included: exact_evidence(problem, {x, y}, true).
/// The noise must be Gaussian.
Evidence exact_evidence(const Problem& problem, const Observations& data, bool with_gradient);

double exact_evidence_bytes(Index n);
double exact_evidence_flops(Index n, bool with_gradient);

}  // namespace mercer::inference
MERCER_API_END
