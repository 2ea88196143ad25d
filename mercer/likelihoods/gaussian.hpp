// y = f + e, e normal with one variance for all observations: the only likelihood under which the
// posterior of f is normal, so that inference is exact. Its variance is learned.
//   Source: Rasmussen & Williams (2006), chapter 2.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

MERCER_API_BEGIN
namespace mercer::likelihoods {

LikelihoodInfo gaussian_info();

/// With this variance of the noise, which must be positive.
std::unique_ptr<Likelihood> make_gaussian(double noise_variance);

}  // namespace mercer::likelihoods
MERCER_API_END
