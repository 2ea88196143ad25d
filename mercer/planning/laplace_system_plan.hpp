// The part of a plan that is about the systems of Laplace's approximation, B = I + S K S for every
// latent function: by Cholesky where all matrices fit and N is small, else by solves with the
// operator and the rank that pay for all functions.
#pragma once

#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::planning {

/// What learning will ask of the systems.
struct LearningNeeds {
  Index probes = 1;        // right-hand sides for every function
  bool by_solves = false;  // train_system must be iterative
};

/// Fills system and train_system, rows and reason. `noise`: a typical entry of W^-1. Throws
/// DoesNotFit.
Plan plan_laplace_system(const inference::Problem& problem, double noise,
                         const inference::Observations& rows, const MethodOptions& method,
                         const LearningNeeds& learning);

}  // namespace mercer::planning
