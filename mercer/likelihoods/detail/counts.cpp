#include "mercer/likelihoods/detail/counts.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "mercer/likelihoods/detail/quadrature.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods::detail {
namespace {

// log(1 + share expm1(d)) for d <= 0, rest = 1 - share.
double log_mixture(double share, double rest, double d) {
  const double change = share * std::expm1(d);
  return change > -0.5 ? std::log1p(change) : std::log(rest + share * std::exp(d));
}

// The part of log p(y | f) that depends on f, d = f - log y:
//   y d - n log((r + mu) / n),  n = r + y;  for r = infinity  y (d - expm1(d)).
// Zero at its maximum d = 0. Loader (2000), Fast and accurate computation of binomial
// probabilities.
double deviance(double y, double d, double r) {
  if (std::isinf(r)) return y * (d - std::expm1(d));
  const double n = r + y;
  if (d <= 0) return y * d - n * log_mixture(y / n, r / n, d);
  return -r * d - n * log_mixture(r / n, y / n, -d);
}

// -1/2 log(1/y + 1/r), less the errors of Stirling's formula in the factorials.
double log_sharpness(double y, double r) {
  if (std::isinf(r)) return 0.5 * std::log(y) - stirling_error(y);
  return 0.5 * std::log(y / (r + y) * r) + stirling_error(r + y) - stirling_error(r) -
         stirling_error(y);
}

}  // namespace

std::string count_fault(double y) {
  return std::isfinite(y) && y >= 0 && std::floor(y) == y ? "" : "must be a count: 0, 1, 2, ...";
}

double count_offset(ConstVectorView y) {
  if (y.size() == 0) return 0;
  return std::log(std::max(y.sum(), 0.5) / static_cast<double>(y.size()));
}

double count_log_density(double y, double f, double r) {
  if (y == 0) return std::isinf(r) ? -std::exp(f) : -r * softplus(f - std::log(r));
  const double log_y = std::log(y);
  return deviance(y, f - log_y, r) + log_sharpness(y, r) - log_y - 0.5 * log_2pi;
}

// E = exp(mean + variance/2) is the mean of mu, and var mu = E^2 (exp(variance) - 1).
Predictive count_predictive(double mean, double variance, double r) {
  const double e = std::exp(mean + 0.5 * variance);
  const double square = std::exp(2 * (mean + variance));  // of mu
  // As a product it would be infinity times zero at either end.
  double spread = square;
  if (variance == 0)
    spread = 0;
  else if (variance < 30)
    spread = std::exp(2 * mean + variance) * std::expm1(variance);
  return {e, e + spread + (std::isinf(r) ? 0 : square / r)};
}

double count_width(double y, double r) { return std::sqrt(1 / (y + 1) + 1 / r); }

// Poisson: U is the logarithm of a Gamma(y + 1) variable; in general its density at u is
// p(y | u) mu (r + y) / (r + mu), which peaks at log(y + 1).
double wide_count_cdf(double y, double mean, double variance, double r) {
  const double z = y + 1, peak = std::log(z), sd = std::sqrt(variance);
  const auto log_density = [&](double t) { return deviance(z, t, r); };
  const auto g = [&](double t) {
    return std::exp(log_density(t)) * normal_cdf((peak + t - mean) / sd);
  };
  const double width = count_width(y, r);
  const double integral = trapezoid(g, concave_range(log_density, 0, width), 0.5 * width);
  return std::min(1.0, std::exp(log_sharpness(z, r) - 0.5 * log_2pi) * integral);
}

double count_quantile(const std::function<double(double)>& cdf, double p, double guess) {
  if (!std::isfinite(guess)) return guess;
  const auto reached = [&](double y) { return y >= 0 && cdf(y) >= p; };
  double step = std::max(1.0, std::floor(0.05 * guess));
  double lower = std::floor(guess), upper = lower;
  if (reached(upper)) {
    for (lower -= step; reached(lower); lower -= step) {
      upper = lower;
      step *= 2;
    }
  } else {
    for (upper += step; !reached(upper) && std::isfinite(upper); upper += step) {
      lower = upper;
      step *= 2;
    }
  }
  // Beyond 2^53 neighbouring doubles are further apart than counts; then to the last bit.
  while (upper - lower > 1) {
    const double middle = std::floor(lower + 0.5 * (upper - lower));
    if (middle <= lower || middle >= upper) break;
    (reached(middle) ? upper : lower) = middle;
  }
  return upper;
}

double count_guess(double p, double mean, double variance, double r) {
  const double z = boost::math::quantile(boost::math::normal(), p);
  const double mu = std::exp(mean);
  return std::exp(mean + z * std::sqrt(variance + 1 / (mu + 1) + 1 / r));
}

}  // namespace mercer::likelihoods::detail
