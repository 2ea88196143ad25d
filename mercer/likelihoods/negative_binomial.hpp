// Counts with mean mu = exp(f) and variance mu + mu^2 / r; r, the parameter "dispersion", is
// learned. Poisson's counts with a gamma-distributed factor on the mean; r = infinity is Poisson.
//   Log-concave: with p = r/(r + mu) and q = mu/(r + mu), W = (y + r) p q.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo negative_binomial_info();

}  // namespace mercer::likelihoods
