// Functions that several likelihoods need, each without cancellation or overflow.
#pragma once

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <cmath>
#include <numbers>

namespace mercer::likelihoods::detail {

/// Boost.Math in double, answering with infinities instead of exceptions.
using Policy = boost::math::policies::policy<
    boost::math::policies::promote_double<false>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

inline constexpr double log_2pi = 1.8378770664093454836;

/// 1 / (1 + exp(-x)).
inline double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x > 0 ? 1 : e) / (1 + e);
}

/// log(1 + exp(x)).
inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// The distribution function of N(0, 1).
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// log Gamma(x) less Stirling's (x - 1/2) log x - x + log(2 pi)/2; about 1/(12 x).
double stirling_error(double x);
/// log x - 1/(2 x) less digamma(x); about 1/(12 x^2).
double digamma_error(double x);

}  // namespace mercer::likelihoods::detail
