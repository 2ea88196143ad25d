// The part of a plan that is about learning: by Cholesky while a gradient takes seconds, else by
// solves on all rows, else (too little memory) by Cholesky on as many rows as fit.
#pragma once

#include "mercer/models/plan.hpp"

namespace mercer::models {

/// Throws DoesNotFit.
void plan_training(const kernels::Kernel& kernel, const MethodOptions& method,
                   const TrainOptions& train, Plan& plan);

}  // namespace mercer::models
