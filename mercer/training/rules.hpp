// What the search for hyperparameters goes by before any evidence is known: bounds, random starts
// and the numbers that are customary with Gaussian noise and with other likelihoods.
#pragma once

#include <cstdint>

#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/optim/box.hpp"

namespace mercer::training {

/// Bounds of the log parameters: ten decades around the start values, which makes sense on unscaled
/// data too; less for shapes; the noise not below 1e-6 of the variance of the target; the signal
/// variance of classes at most 100.
optim::Box bounds(const inference::Problem& start, const inference::Observations& rows);

/// A start beside the first: one common factor for all lengthscales and a smaller one for each.
Vector random_start(const inference::Problem& start, const optim::Box& box, std::uint64_t seed,
                    int index);

/// Numbers of a search that differ with the likelihood.
struct Rules {
  double value_tolerance;  // of L-BFGS on exact evidences, per entry of y
  double gain_left;        // log evidence that a climb with a Hessian may leave
  /// Log evidence that a climb may leave when one with a Hessian follows; 0: each climb goes to the
  /// end, and all starts climb the same rows.
  double coarse_gain;
  bool uses_hessian;  // of fewer rows, in a climb on more
  int descent_steps;  // of Adam and AdaGrad, unless the user says otherwise
};
Rules rules_for(const inference::Problem& problem);

}  // namespace mercer::training
