// Learning the hyperparameters of a Laplace approximation by maximising its log evidence: L-BFGS on
// the exact one by Cholesky, several starts on few rows, the best continued on more; then, for more
// rows than that, Adam or AdaGrad on gradients by solves.
//   Cost: N^3 (Newton steps / 3 + 1) flops a function and exact evaluation; by solves, one Newton
//         method from the last mode and probes + 1 solves a step.
#pragma once

#include "mercer/models/latent.hpp"

namespace mercer::models {

struct LatentTraining {
  inference::LatentProblem problem;
  inference::LaplaceMode mode;  // the last one found on all rows, to start from; or empty
  TrainReport report;
};

using LatentStepObserver =
    std::function<void(const inference::LatentProblem&, int step, double seconds)>;

/// What will be done, before anything is: fills trains, train_method, train_rows, start_rows,
/// system, train_system, and says why. `functions`: latent functions.
Plan plan_latent(const kernels::Kernel& kernel, ConstMatrixView x, Index functions,
                 const MethodOptions& method, const TrainOptions& train);

/// `identity` names the run; a checkpoint of another one is refused.
LatentTraining train_latent(const inference::LatentProblem& start,
                            const inference::LatentData& data, const Plan& plan,
                            const TrainOptions& options, std::uint64_t seed, std::uint64_t identity,
                            const ProgressCallback& progress,
                            const LatentStepObserver& on_step = {});

}  // namespace mercer::models
