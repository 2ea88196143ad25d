// How learning went, and the log marginal likelihood of what was learned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/history.hpp"
#include "mercer/core/types.hpp"
#include "mercer/inference/evidence.hpp"

MERCER_API_BEGIN
namespace mercer::training {

/// One exact gradient of a training by solves, and what was known after it.
struct TrainStep {
  bool factored = false;  // by a factorisation of its rows: no probes, no noise
  int number = 0;         // from 1
  Index rows = 0;         // that it is a gradient of
  double seconds = 0;
  double gradient_norm = 0;
  std::optional<double> log_likelihood;  // of its rows, where they were factored
  std::optional<double> predicted_gain;  // lbfgs: log likelihood still to be gained
  std::optional<double> noise_gain;      // what the noise of the gradient alone would show
  double tolerance = 0;                  // of the solves
  StopReason stop = StopReason::converged;
  double relative_residual = 0;  // of the solves, the worst column
  int iterations = 0;
  std::int64_t matvecs = 0;
};

/// A gradient of the evidence of all rows, read in passes.
struct FullStep {
  double log_likelihood = 0;  // or its bound
  double gradient_norm = 0;
  double predicted_gain = 0;  // of the step from here
};

struct TrainReport {
  int steps = 0;
  int evaluations = 0;
  int failed_evaluations = 0;  // not positive definite: the line search backed off
  int restarts = 0;
  int resumed_evaluations = 0;  // answered from the checkpoint
  StopReason stop = StopReason::converged;
  std::vector<std::string> bounds_hit;  // parameter names
  double seconds = 0;
  // By solves only (Plan::train_by_solves):
  std::vector<TrainStep> history;   // of the gradients of this run
  int resumed_gradients = 0;        // before those, from the checkpoint
  Vector gradient, standard_error;  // of the last exact gradient
  Index gradient_rows = 0;          // that it was computed on
  /// What those gradients took, in products of all rows with one column: those of fewer rows by the
  /// square of their share, passes with derivatives by their time.
  double products = 0;
  bool budget_spent = false;  // learning would have gone on
  int loose_gradients = 0;    // whose solves missed their tolerance
  /// Solves so far from their tolerance that no gradient was taken from them.
  int failed_gradients = 0;
  Index raised_conditionals = 0;  // of the surrogate: not positive definite to rounding, mended
  int surrogate_evaluations = 0;
  std::int64_t matvecs = 0;
  // Of an approximation only:
  int approximate_evaluations = 0;  // of its evidence, those from the checkpoint included
  int level_evaluations = 0;        // of these, on fewer rows before all
  int base_evaluations = 0;         // of these, with the base points moving
  /// It went on from the start values, which led to more of its evidence than where exact climbs
  /// ended.
  bool from_start_values = false;
  Index base_points = 0;
  // Of rows that are read in passes only:
  int full_evaluations = 0;          // of the evidence of all rows, those from the checkpoint too
  int full_gradients = 0;            // of these, with the gradient
  int resumed_full_values = 0;       // answered from the checkpoint
  std::vector<FullStep> full_steps;  // a row for each gradient
  StopReason full_stop = StopReason::converged;

  Index gradients() const { return resumed_gradients + static_cast<Index>(history.size()); }
};

}  // namespace mercer::training
MERCER_API_END
