// Counts with mean and variance exp(f).
//   Log-concave, W = exp(f). Predictive mean and variance are closed (log-normal).
//   When counts scatter more than that around any smooth mean: negative-binomial.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo poisson_info();

}  // namespace mercer::likelihoods
