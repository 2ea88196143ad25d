// Integrals over one variable by the trapezoidal rule, halved until it agrees with itself.
//   Source: Trefethen & Weideman (2014), The exponentially convergent trapezoidal rule.
// For an analytic integrand that vanishes at both ends, halving the step squares the error. With a
// Gaussian in the integrand this needs fewer nodes than Gauss-Hermite as soon as the other factor
// is narrower than the Gaussian, and it knows its own error.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mercer::likelihoods::detail {

struct Interval {
  double lower = 0, upper = 0;
};

/// The integral of g over `range`, at whose ends g is negligible.
template <class G>
double trapezoid(const G& g, Interval range, double step) {
  constexpr double tolerance = 1e-9;  // of the last change, so that the error is about its square
  constexpr int max_halvings = 12;
  const double width = range.upper - range.lower;
  auto n = static_cast<long>(std::clamp(std::ceil(width / step), 8.0, 1e6));
  double h = width / static_cast<double>(n), sum = 0, magnitude = 0;
  for (long k = 0; k <= n; ++k) {
    const double value = g(range.lower + static_cast<double>(k) * h);
    sum += value;
    magnitude += std::abs(value);
  }
  for (int halving = 0; halving < max_halvings && std::isfinite(sum); ++halving) {
    double middles = 0;
    for (long k = 0; k < n; ++k) middles += g(range.lower + (static_cast<double>(k) + 0.5) * h);
    const double change = std::abs(middles - sum);
    sum += middles;
    h *= 0.5;
    n *= 2;
    if (change <= tolerance * magnitude) break;
    magnitude *= 2;
  }
  return h * sum;
}

/// The average of g(f) over f ~ N(mean, variance). What g grows by must stay below exp(3 sd f).
template <class G>
double gaussian_average(const G& g, double mean, double variance) {
  if (variance == 0) return g(mean);
  const double sd = std::sqrt(variance);
  const auto weighted = [&](double z) { return std::exp(-0.5 * z * z) * g(mean + sd * z); };
  constexpr double reach = 12;
  return trapezoid(weighted, {-reach, reach}, 0.5) / std::sqrt(2 * std::numbers::pi);
}

/// Where a concave function is within 45 of its peak: beyond, its exponential is below rounding.
template <class L>
Interval concave_range(const L& log_g, double peak, double width) {
  const double floor = log_g(peak) - 45;
  const auto reach = [&](double direction) {
    double inside = 0, outside = width;
    while (log_g(peak + direction * outside) > floor && std::isfinite(outside)) {
      inside = outside;
      outside *= 2;
    }
    for (int i = 0; i < 3; ++i) {
      const double middle = 0.5 * (inside + outside);
      (log_g(peak + direction * middle) > floor ? inside : outside) = middle;
    }
    return direction * outside;
  };
  return {peak + reach(-1), peak + reach(1)};
}

/// log of the integral of exp(log_g), log_g concave; `peak` near its maximum, which is about
/// `width` wide.
template <class L>
double log_integral(const L& log_g, double peak, double width) {
  const double top = log_g(peak);
  const auto g = [&](double f) { return std::exp(log_g(f) - top); };
  return top + std::log(trapezoid(g, concave_range(log_g, peak, width), 0.5 * width));
}

}  // namespace mercer::likelihoods::detail
