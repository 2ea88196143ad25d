// What a solved problem keeps for predictions.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct Weights {
  Vector w;                // H^-1 (y - A beta)
  Vector beta;             // mean coefficients
  Matrix basis_solves;     // H^-1 A, N x q
  Matrix beta_covariance;  // (A' H^-1 A)^-1
};

/// Generalised least squares from G = A'H^-1 A and b = A'H^-1 y: beta and its covariance G^-1.
/// Throws NotPositiveDefinite when the columns of A are linearly dependent.
struct Trend {
  Vector beta;
  Matrix covariance;
};
Trend solve_trend(Matrix g, ConstVectorView b);

/// beta and w from the block solution [H^-1 y, H^-1 A].
Weights combine_solves(ConstMatrixView solves, ConstMatrixView basis);

}  // namespace mercer::inference
MERCER_API_END
