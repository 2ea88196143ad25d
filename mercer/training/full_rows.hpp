// The last part of learning where the rows in memory are a sample: a few evaluations of an
// approximation's evidence over all rows, which are read in passes.
//   Method: quasi-Newton steps from where the sample has led, with the curvature of the sample
//           times N/n as their metric and the secant of each step after it. A step counts only when
//           the evidence of all rows grows; learning ends when the metric expects little more.
//   Cost:   a pass for every value, one more for a gradient: at most 2 G + 1 passes for G
//           gradients; p + 1 evaluations on kMetricRows rows for the metric.
//   When not: all rows are in memory: L-BFGS on them reaches the optimum itself.
#pragma once

#include <memory>

#include "mercer/inference/sparse/streamed.hpp"
#include "mercer/training/training.hpp"

namespace mercer::training {

/// Rows of the sample that the metric is computed on, at most.
inline constexpr Index kMetricRows = 20'000;

struct FullClimb {
  Vector theta;
  inference::LikelihoodValue likelihood;  // of all rows; not known when learning was stopped early
  /// The approximation over all rows, with what its last passes have summed.
  std::shared_ptr<inference::Inference> method;
};

/// Goes on from `start`, which the sample has led to. The report of the search says how it went and
/// whether it was stopped; then theta is the best so far.
FullClimb climb_full_rows(Search& search, const FullRows& full, const Vector& start);

}  // namespace mercer::training
