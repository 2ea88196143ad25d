// Learning hyperparameters by maximising the exact log marginal likelihood: L-BFGS in log
// parameters, several starts on a subset, the best of them continued on all training rows.
//   Cost: one exact evidence with gradient (N^3 flops, 8 N^2 bytes) per evaluation.
// Every evaluation goes through a replay log, so that a killed run resumes to the same bits.
#pragma once

#include <cstdint>

#include "mercer/models/regression.hpp"

namespace mercer::models {

struct TrainingOutcome {
  inference::Problem problem;
  TrainReport report;
  LikelihoodValue likelihood;
};

/// Told of the values that a step has reached and the seconds until then, without its own.
using StepObserver = std::function<void(const inference::Problem&, int step, double seconds)>;

/// `identity` names the run (data and options); a checkpoint of another run is refused.
TrainingOutcome train(const inference::Problem& start, const inference::Observations& data,
                      const Plan& plan, const TrainOptions& options, std::uint64_t seed,
                      std::uint64_t identity, const ProgressCallback& progress,
                      const StepObserver& on_step = {});

}  // namespace mercer::models
