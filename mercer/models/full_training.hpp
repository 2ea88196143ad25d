// Learning hyperparameters on all rows by solves, without a factorisation of H.
//   lbfgs     maximises the Vecchia likelihood of all rows by L-BFGS, then corrects it: at theta_k
//             the exact gradient g (inference/evidence_gradient.hpp) differs from that of the
//             surrogate by c, and theta_{k+1} maximises surrogate(theta) + c'theta. At its fixed
//             point the exact gradient is zero. A few exact gradients do what a hundred steps of
//             Adam do, because the surrogate knows the curvature.
//   adam, adagrad   steps along exact gradients (Cutajar et al. 2016 used AdaGrad with step 1)
//   vecchia   the surrogate only
// The end is honest: with F the information matrix (and a prior of unit width), g'F^-1 g / 2 is
// the log likelihood that is still to be gained; a run ends when that is less than a tenth, where
// the posterior of theta cannot tell any more, or within what the noise of g alone would show.
#pragma once

#include <functional>
#include <map>

#include "mercer/inference/evidence_gradient.hpp"
#include "mercer/core/progress.hpp"
#include "mercer/training/report.hpp"
#include "mercer/optim/box.hpp"
#include "mercer/optim/stochastic.hpp"

namespace mercer::models {

struct FullTrainingOptions {
  std::string method = "lbfgs";  // lbfgs | adam | adagrad | vecchia
  int steps = 100;               // at most; corrections of lbfgs: at most 10 of them
  int surrogate_steps = 60;      // of a climb on the surrogate, at most
  inference::EstimatorOptions estimator;
  std::optional<Index> neighbours;  // of the surrogate; unset: by size
  std::uint64_t seed = 0;
};

struct FullTrainingOutcome {
  inference::Problem problem;
  StopReason stop = StopReason::iteration_limit;
  std::vector<TrainStep> steps;
  int resumed_steps = 0;            // taken before, by the run that is gone on with
  Vector gradient, standard_error;  // of the last exact estimate; empty for vecchia
  int loose_gradients = 0;          // whose solves missed their tolerance
  int surrogate_evaluations = 0;
  Index raised_conditionals = 0;  // the most in an evaluation of the surrogate
  std::int64_t matvecs = 0;
};

/// What a run goes on from, as named arrays for a checkpoint.
using FullState = std::map<std::string, Matrix>;

struct FullTrainingHooks {
  ProgressCallback progress;
  /// The values reached, after every step and every climb on the surrogate.
  std::function<void(const Vector& theta)> on_values;
  /// After every exact gradient and what followed from it; the state resumes the run to the same
  /// bits.
  std::function<void(const FullState&)> after_step;
};

/// Begins at `start`, or where `state` was. Stops with StopReason::interrupted and the values so
/// far when the progress callback says so.
FullTrainingOutcome learn_by_solves(const inference::Problem& start,
                                    const inference::Observations& data, const optim::Box& box,
                                    const FullTrainingOptions& options, const FullState& state,
                                    const FullTrainingHooks& hooks);

/// The Vecchia likelihood at these values.
double surrogate_likelihood(const inference::Problem& problem, const inference::Observations& data,
                            std::uint64_t seed);

/// Adam and AdaGrad, which begin at the start values, as in the papers.
bool is_descent(const std::string& method);
/// Neighbours of the surrogate for so many points.
Index surrogate_neighbours(Index n);

}  // namespace mercer::models
