// Standardisation: every encoded input, and the target, to mean 0 and standard deviation 1.
// One-hot inputs are scaled like any other: a rare level then lies further away, which automatic
// relevance determination can undo.
#pragma once

#include <span>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct Scaling {
  Vector input_mean;  // d
  Vector input_sd;    // d, population standard deviations, positive
  double target_mean = 0;
  double target_sd = 1;

  static Scaling identity(Index dimension);

  /// In place, on an M x d block of raw inputs.
  void scale_inputs(MatrixView inputs) const;
  void unscale_inputs(MatrixView inputs) const;
  void scale_target(VectorView target) const;
  /// Of values on the target's scale (means, quantiles), and of widths (standard deviations,
  /// bounds).
  void unscale_target(VectorView values) const;
  double unscale_target(double value) const { return target_mean + target_sd * value; }
  double unscale_width(double width) const { return target_sd * width; }
};

/// Means and standard deviations of N x d inputs and N targets. A column of one value gets sd 1.
/// Values up to 1e300 in size neither overflow nor underflow on the way.
Scaling fit_scaling(ConstMatrixView inputs, ConstVectorView target);

/// One divisor for these columns, the root mean square of their standard deviations (of those that
/// vary in `inputs`): distances between them keep the proportions that they have in the data, in
/// whatever direction the axes point.
void share_scale(Scaling& scaling, ConstMatrixView inputs, std::span<const Index> columns);

}  // namespace mercer::data
MERCER_API_END
