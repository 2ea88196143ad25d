// The plan of draws from the posterior of the hyperparameters: which sampler makes them, and how
// the system of every draw is solved.
#pragma once

#include "mercer/planning/plan.hpp"
#include "mercer/training/sampling/options.hpp"

MERCER_API_BEGIN
namespace mercer::planning {

/// As plan_fit; `train_method` is the sampler and `train_system` what its gradients are solved
/// with. `auto` takes the preferred sampler of the registry where its exact evidences take less
/// than an hour on a typical machine and fit into memory, else the first that goes by solves.
/// Throws DoesNotFit, InvalidArgument.
Plan plan_sampling(const inference::Problem& problem, double noise,
                   const inference::Observations& rows, const MethodOptions& method,
                   TrainOptions train, const training::SampleOptions& sample);

/// One line for each sampler, for help pages.
std::string describe_samplers();

}  // namespace mercer::planning
MERCER_API_END
