// Two classes, P(y = 1 | f) = 1 / (1 + exp(-f)).
//   Source: Rasmussen & Williams (2006), chapter 3. Log-concave, W = p (1 - p).
//   Predictions are integrals without a closed form; bernoulli-probit has one.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo bernoulli_logit_info();

}  // namespace mercer::likelihoods
