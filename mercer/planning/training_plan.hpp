// The part of a plan that is about learning: exact evidences while they take seconds, else
// gradients by solves on all rows, else (too little memory) exact evidences of as many rows as fit.
#pragma once

#include "mercer/planning/laplace_system_plan.hpp"

namespace mercer::planning {

/// Adds the ways to learn and takes one: fills trains, train_method, train_rows, train_levels,
/// train_system and the reason. The systems are planned already. Throws DoesNotFit.
void plan_training(const inference::Problem& problem, const inference::Observations& rows,
                   const MethodOptions& method, const TrainOptions& train, Plan& plan);

/// What learning will ask of the systems of Laplace's approximation.
LearningNeeds laplace_needs(const inference::Problem& problem, const inference::Observations& rows,
                            const TrainOptions& train);

}  // namespace mercer::planning
