// The Vecchia likelihood as a surrogate of the exact one: climbed by L-BFGS, with a linear
// correction where the exact gradient is known.
#pragma once

#include "mercer/training/search.hpp"

namespace mercer::training {

class Surrogate {
 public:
  /// The rows must outlive this.
  /// `on_trial`: what is found is not yet what the search has reached.
  Surrogate(Search& search, const inference::Observations& rows, bool on_trial = false);

  /// Neighbours of these values: lengthscales say who is near.
  void renew(const Vector& theta);
  const Vector& neighbours_at() const { return neighbours_at_; }
  inference::Evidence evaluate(ConstVectorView theta, bool gradient = true);

  /// From theta to the maximum, with the neighbours of the start and then those found there.
  Vector maximise(const Vector& theta, int steps);
  /// Maximises surrogate(theta) + c'(theta - middle) over the box from `middle`; ends when five
  /// steps together gain less than `gain`.
  Vector climb(const Vector& middle, const Vector& c, const optim::Box& box, int steps,
               double gain);
  /// How the last climb ended.
  StopReason stop() const { return stop_; }

 private:
  Search& search_;
  const inference::Observations& rows_;
  bool on_trial_;
  inference::Problem problem_;
  std::unique_ptr<inference::Inference> method_;
  Vector neighbours_at_;
  StopReason stop_ = StopReason::converged;
};

/// Log likelihood that a climb may leave: while neighbours are those of the start values, and
/// after.
inline constexpr double kCoarseGain = 1, kFineGain = 0.02;

}  // namespace mercer::training
