// Two classes, P(y = 1 | f) = Phi(f), the normal distribution function.
//   Source: Rasmussen & Williams (2006), sections 3.4 to 3.6. Log-concave; predictions are closed:
//   P(y = 1) = Phi(mean / sqrt(1 + variance)).
//   A far outlier costs f^2 / 2, in bernoulli-logit only |f|: prefer that when labels are noisy.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo bernoulli_probit_info();

}  // namespace mercer::likelihoods
