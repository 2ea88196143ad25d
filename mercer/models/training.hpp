// Learning hyperparameters by maximising the exact log marginal likelihood: L-BFGS in log
// parameters, several starts on a subset, the best of them continued on all training rows.
//   Cost: one exact evidence with gradient (N^3 flops, 8 N^2 bytes) per evaluation.
// Every evaluation goes through a replay log, so that a killed run resumes to the same bits.
#pragma once

#include "mercer/models/fit_method.hpp"

namespace mercer::models {

Learned train(const inference::Problem& start, const inference::Observations& data,
              const Plan& plan, const LearnRequest& request);

}  // namespace mercer::models
