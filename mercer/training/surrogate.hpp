// The Vecchia likelihood as a surrogate of the exact one: climbed by L-BFGS in the metric of its
// information matrix, with a correction where exact gradients are known (discrepancy.hpp).
#pragma once

#include "mercer/training/discrepancy.hpp"
#include "mercer/training/search.hpp"

namespace mercer::training {

/// Log likelihood that a climb may leave: while neighbours are those of the start values, and
/// after.
inline constexpr double kCoarseGain = 1, kFineGain = 0.02;

class Surrogate {
 public:
  struct Options {
    bool on_trial = false;  // what is found is not yet what the search has reached
    /// That each row is conditioned on; unset: by the number of rows.
    std::optional<Index> neighbours = {};
  };
  /// The rows must outlive this.
  Surrogate(Search& search, const inference::Observations& rows, const Options& options);

  /// Neighbours of these values: lengthscales say who is near.
  void renew(const Vector& theta);
  const Vector& neighbours_at() const { return neighbours_at_; }
  inference::Evidence evaluate(ConstVectorView theta, bool gradient = true);

  /// From theta to the maximum, with the neighbours of the start and then those found there; ends
  /// when about so much log likelihood is left to gain.
  Vector maximise(const Vector& theta, int steps, double gain = kFineGain);
  /// Maximises the surrogate and the integral of its correction over the box, from `start`; ends
  /// when about so much log likelihood is left to gain.
  Vector climb(const Vector& start, const Discrepancy& correction, const optim::Box& box, int steps,
               double gain);
  /// How the last climb ended.
  StopReason stop() const { return stop_; }

 private:
  Search& search_;
  const inference::Observations& rows_;
  Options options_;
  inference::Problem problem_;
  std::unique_ptr<inference::Inference> method_;
  Vector neighbours_at_;
  // The last evaluation with a gradient: a climb begins where one was just made.
  Vector last_at_;
  inference::Evidence last_;
  StopReason stop_ = StopReason::converged;
};

}  // namespace mercer::training
