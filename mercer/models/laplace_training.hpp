// Learning the hyperparameters of a Laplace approximation by maximising its log evidence: L-BFGS on
// the exact one by Cholesky, several starts on few rows, the best continued on more with their
// Hessian; then, for more rows than that, Newton's steps with gradients by solves that correct the
// Hessian of fewer rows, or Adam or AdaGrad on them.
//   Cost: 4/3 N^3 flops a function and exact evaluation, of which all rows see three to five; by
//         solves, one mode from the last one and probes + 1 solves a step, three to six steps.
#pragma once

#include "mercer/inference/laplace.hpp"
#include "mercer/models/fit_method.hpp"

namespace mercer::models {

/// Rows of the several starts.
inline constexpr Index kLaplaceStartRows = 500;
/// With more parameters than this the noise of a few probes is too much for Newton's steps by
/// solves, so that `auto` takes Adam, which averages it; and a Hessian is that of few rows.
inline constexpr Index kMostDirections = 8;

struct LaplaceTraining {
  Learned learned;
  inference::LaplaceMode mode;  // the last one found on all rows, to start from; or empty
};

/// What will be done, before anything is: fills trains, train_method, train_rows, start_rows,
/// system, train_system, and says why. `noise`: what W^-1 will be like; `functions`: latent
/// functions.
Plan plan_laplace(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
                  inference::FunctionCount functions, const MethodOptions& method,
                  const TrainOptions& train);

LaplaceTraining train_laplace(const inference::Problem& start, const inference::Observations& data,
                              const Plan& plan, const LearnRequest& request);

}  // namespace mercer::models
