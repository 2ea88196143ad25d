// A joint climb over hyperparameters and base points of a sparse approximation: L-BFGS over
// [theta, base points] on the evidence of the method, within bounds.
//   Source: Snelson & Ghahramani (2006) for FITC; Titsias (2009) for the variational bound.
//   Cost:   one evaluation with both gradients a step (O(N m^2)), usually 1.1 to 1.2; the log of
//   all
//           evaluations, 2 (p + m d) + 1 numbers each, is kept for checkpoints.
//   When not: more base points are usually the better use of the time: an evaluation costs m^2,
//           and m d more variables need tens of evaluations.
// It never ends below the evidence it began with, and a run that was stopped goes on to the same
// bits.
#pragma once

#include <functional>

#include "mercer/inference/inference.hpp"
#include "mercer/optim/box.hpp"

MERCER_API_BEGIN
namespace mercer::training {

struct BaseStep {
  int number = 0;  // from 1
  double evidence = 0;
  Vector theta;  // the best until now
};

struct BaseClimb {
  optim::Box box;                 // of the log parameters
  Matrix range;                   // 2 x d: lowest and highest value of each input
  double entries = 1;             // observations of y, which tolerances are per
  int steps = 100;                // at most
  double value_tolerance = 1e-9;  // of the evidence per entry, over five steps
  /// It ends when three steps together have gained no more log evidence and the model of L-BFGS
  /// promises no more; the posterior cannot tell such a difference.
  double gain_left = 0.1;
  /// What `keep` was told last in a run that was stopped; empty: from the start.
  inference::State from = {};
  /// Told after each evaluation.
  std::function<void(inference::State)> keep = {};
  std::function<Action(const BaseStep&)> observer = {};
};

/// Lowest and highest value of each column.
Matrix input_range(ConstMatrixView x);

struct BaseClimbResult {
  Vector theta;  // of the best evaluation
  Matrix base;   // the same, m x d
  double start_evidence = 0, evidence = 0;
  Vector gradient;  // of the evidence in theta
  int steps = 0;
  int evaluations = 0;
  int failed_evaluations = 0;               // not positive definite: the line search backed off
  int resumed_evaluations = 0;              // answered from `from`
  StopReason stop = StopReason::converged;  // interrupted: what was best until then
};

/// From the values of `at` and the base points of the method, which are chosen there when it has
/// none. It then has the best. Throws InvalidArgument unless the method has
/// Abilities::optimizes_base; ToleranceNotReached when there is no evidence at the start.
BaseClimbResult climb_base(inference::Inference& method, const inference::Problem& at,
                           const BaseClimb& climb);

class MERCER_HIDDEN Search;

/// The same as a part of a search: bounds, steps, checkpoint, progress and report are those of the
/// search. Stopped by the user it returns what was best (report.stop says so).
BaseClimbResult climb_base(Search& search, inference::Inference& method, const Vector& start);

}  // namespace mercer::training
MERCER_API_END
