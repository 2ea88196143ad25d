// What the likelihoods of counts share: mean mu = exp(f), variance mu + mu^2 / r. An infinite r is
// Poisson's.
#pragma once

#include <functional>
#include <string>

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods::detail {

/// Empty for a count, else why y is not one.
std::string count_fault(double y);

/// log of the mean; of half an event in all, when every count is zero.
double count_offset(ConstVectorView y);

/// log p(y | f). Of large counts too it is exact to about y |f - log y| roundings.
double count_log_density(double y, double f, double r);

/// Mean and variance of y when f is normal; may be infinite.
Predictive count_predictive(double mean, double variance, double r);

/// How wide P(Y <= y | f) is as a function of f.
double count_width(double y, double r);

/// P(Y <= y) when f is normal and wider than count_width. P(Y <= y | f) = P(U > f) for a variable U
/// that depends on y only, so it is the average over U of P(f < U).
double wide_count_cdf(double y, double mean, double variance, double r);

/// The smallest count with cdf(y) >= p, by doubling steps from `guess` and bisection.
double count_quantile(const std::function<double(double)>& cdf, double p, double guess);

/// Where to look for the quantile p: that of exp(f), its noise added in logs.
double count_guess(double p, double mean, double variance, double r);

}  // namespace mercer::likelihoods::detail
