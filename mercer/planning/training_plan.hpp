// The part of a plan that is about learning: exact evidences while they take seconds, else
// gradients by solves on all rows, else (too little memory) exact evidences of as many rows as fit.
#pragma once

#include "mercer/planning/system_plan.hpp"

namespace mercer::planning {

/// Adds the ways to learn and takes one: fills trains, train_method, train_rows, train_levels,
/// train_system and the reason. `noise` as in plan_fit, `bytes_after` as in refuse. Throws
/// DoesNotFit.
void plan_training(const inference::Problem& problem, double noise,
                   const inference::Observations& rows, const MethodOptions& method,
                   const TrainOptions& train, double bytes_after, Plan& plan);

/// The exact searches that an approximation begins with, on few of its rows.
struct StartLevels {
  std::vector<Index> levels;  // rows of each, in order; empty: none
  double seconds = 0, bytes = 0;
};
StartLevels plan_start(const inference::Problem& problem, double noise,
                       const inference::Observations& rows, const MethodOptions& method,
                       const TrainOptions& train, Index learned_rows, const Plan& plan);

}  // namespace mercer::planning
