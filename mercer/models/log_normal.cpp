#include "mercer/models/log_normal.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace mercer::models {

double standard_normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double LogNormal::median() const { return std::exp(mu); }
double LogNormal::mean() const { return std::exp(mu + 0.5 * sigma * sigma); }
double LogNormal::sd() const { return mean() * std::sqrt(std::expm1(sigma * sigma)); }
double LogNormal::at(double z) const { return std::exp(mu + z * sigma); }
double LogNormal::z(double y) const { return (std::log(y) - mu) / sigma; }

// N(log y; mu, sigma^2) times d log y / dy = 1 / y.
double LogNormal::log_density(double y) const {
  const double at_y = z(y);
  return -0.5 * std::log(2 * std::numbers::pi) - std::log(sigma) - 0.5 * at_y * at_y - std::log(y);
}

// y (2 Phi(w) - 1) - 2 mean (Phi(w - sigma) + Phi(sigma / sqrt 2) - 1), w = z(y). With the upper
// tails Q = 1 - Phi the parentheses are a sum of a small and an ordinary number where y is large.
double LogNormal::crps(double y) const {
  const double w = z(y);
  const double upper = standard_normal_cdf(sigma - w);  // 1 - Phi(w - sigma)
  return y * std::erf(w / std::numbers::sqrt2) -
         2 * mean() * (standard_normal_cdf(sigma / std::numbers::sqrt2) - upper);
}

double LogNormal::mean_error(double bound) const {
  // exp of a rounded argument, and its own last digit.
  constexpr double eps = std::numeric_limits<double>::epsilon();
  return mean() * (std::expm1(bound) + 4 * eps * (1 + std::abs(mu) + sigma * sigma));
}

LogNormal log_normal_of_ratio(double mu, double sd_over_mean) {
  return {mu, std::sqrt(std::log1p(sd_over_mean * sd_over_mean))};
}

}  // namespace mercer::models
