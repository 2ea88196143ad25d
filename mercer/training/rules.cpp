#include "mercer/training/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::training {
namespace {

constexpr double kLogBound = 11.512925464970229;  // 1e-5 .. 1e5 around the start
constexpr double kLeastNoise = 1e-6;              // of the variance of the target
// Signal variance of classes, at most: |f| = 10 is already a chance of 5e-5. Where classes can be
// separated, Laplace's evidence likes it without bound, and its predictions come near 1/2.
constexpr double kMostClassVariance = 100;

}  // namespace

optim::Box bounds(const inference::Problem& start, const inference::Observations& rows) {
  const Vector theta = start.log_parameters();
  const auto& kernel = start.kernel;
  for (Index i = 0; i < theta.size(); ++i)
    if (!std::isfinite(theta(i)))
      throw InvalidArgument(fmt::format(
          "learning cannot begin at the value {} of {}; give another with `lengthscale`, "
          "`signal_variance` or `noise`, or scale the data",
          std::exp(theta(i)), start.parameter_names()[static_cast<std::size_t>(i)]));
  const auto lengths = kernel.is_lengthscale(), variances = kernel.is_variance();
  Vector lower = theta.array() - kLogBound;
  Vector upper = theta.array() + kLogBound;
  const bool classes = start.likelihood->is_binary() && kernel.stationary();
  for (Index i = 0; i < kernel.num_parameters(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    // Shapes (alpha, period, offset) wander less far before they stop to matter.
    if (!lengths[index] && !variances[index]) {
      lower(i) = theta(i) - 0.5 * kLogBound;
      upper(i) = theta(i) + 0.5 * kLogBound;
    }
    if (classes && variances[index]) upper(i) = std::max(std::log(kMostClassVariance), theta(i));
  }
  if (start.gaussian()) {
    const auto y = rows.target();
    const double variance = std::max((y.array() - y.mean()).square().mean(), 1e-300);
    const Index last = theta.size() - 1;
    lower(last) = std::min(std::log(kLeastNoise * variance), theta(last) - 1);
  }
  kernel.narrow_to_limits(lower, upper);
  return {std::move(lower), std::move(upper)};
}

Vector random_start(const inference::Problem& start, const optim::Box& box, std::uint64_t seed,
                    int index) {
  Rng rng(seed, "restart", static_cast<std::uint64_t>(index));
  Vector theta = start.log_parameters();
  const auto lengths = start.kernel.is_lengthscale();
  const bool gaussian = start.gaussian();
  const double common = 0.7 * rng.normal();
  for (Index i = 0; i < theta.size(); ++i) {
    const bool of_kernel = i < start.kernel.num_parameters();
    if (of_kernel && lengths[static_cast<std::size_t>(i)])
      theta(i) += common + 0.4 * rng.normal();
    else if (gaussian)  // noise is often less than a tenth of the variance
      theta(i) += of_kernel ? 0.5 * rng.normal() : 1.5 * rng.normal() - 1.0;
    else
      theta(i) += 0.7 * rng.normal();
  }
  return box.inside(theta);
}

Rules rules_for(const inference::Problem& problem) {
  if (problem.gaussian())
    return {.value_tolerance = 1e-9,
            .gain_left = 0.001,
            .coarse_gain = 0.1,
            .uses_hessian = true,
            .descent_steps = 100};
  return {.value_tolerance = 1e-7,
          .gain_left = 0.01,
          .coarse_gain = 0,
          .uses_hessian = true,
          .descent_steps = 40};
}

}  // namespace mercer::training
