// An estimate of the error of predicted means, beside the bound: how much the last change of the
// weights, scaled to what is left of the residual, moves the mean between training points.
//   Probe points lie half way from a random training point to the one most correlated with it, or
//   as far to the other side, which may be outside the data. (At the training points themselves the
//   error is no guide: with little noise it is that of the residual there, and larger in between.)
//   Source: Strakos & Tichy (2002) for errors of conjugate gradients from their last steps.
//   Cost:   two times 128 N kernel values.
//   How good: within a third and 30 times the largest error at new points in 95 % of the cases of
//           experiments/certificates. It is no bound.
#pragma once

#include <cstdint>

#include "mercer/inference/problem.hpp"

namespace mercer::inference {

/// At most 128 points, on the scale of the model.
Matrix probe_points(const kernels::Kernel& kernel, ConstMatrixView x, std::uint64_t seed);

/// A change of weights and trend coefficients; `beta` is empty without a trend.
struct WeightChange {
  Vector w, beta;
};

/// The estimate for the weights `w`, from the change that is thought to be missing to the exact
/// ones; rounding of the predictions themselves included.
double error_estimate(const Problem& problem, ConstMatrixView x, ConstVectorView w,
                      const WeightChange& missing, std::uint64_t seed);

}  // namespace mercer::inference
