#include "mercer/optim/stochastic.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"

namespace mercer::optim {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999;  // as in the paper
constexpr double kAdamFloor = 1e-8, kAdagradFloor = 1e-6;

// The cosine that takes the rate to 0 over the last part of a run.
double cooled(const StochasticOptions& o, int step) {
  const double from = (1 - o.cooling) * o.steps;
  if (step <= from || o.cooling <= 0) return o.rate;
  const double share = (step - from) / (o.cooling * o.steps);
  return o.rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(share, 1.0)));
}

Vector step_of(StochasticState& s, const Vector& g, const StochasticOptions& o) {
  if (o.rule == StepRule::adagrad) {
    s.second.array() += g.array().square();
    return -o.rate * g.array() / (s.second.array().sqrt() + kAdagradFloor);
  }
  s.first = kFirstDecay * s.first + (1 - kFirstDecay) * g;
  s.second = kSecondDecay * s.second + (1 - kSecondDecay) * g.cwiseAbs2();
  const double n = s.step + 1;
  const Vector mean = s.first / (1 - std::pow(kFirstDecay, n));
  const Vector square = s.second / (1 - std::pow(kSecondDecay, n));
  return -cooled(o, s.step) * mean.array() / (square.array().sqrt() + kAdamFloor);
}

Vector mean_of(const std::vector<Vector>& rows) {
  Vector mean = Vector::Zero(rows.front().size());
  for (const auto& row : rows) mean += row;
  return mean / static_cast<double>(rows.size());
}

// The mean gradient of the window against its own noise: sum (mean/sigma)^2 <= p, where sigma is
// the larger of the spread within the window and what the estimate says of itself.
bool within_noise(const StochasticState& s, const Vector& standard_error,
                  const StochasticOptions& o) {
  const auto n = static_cast<double>(s.gradients.size());
  if (s.gradients.size() < static_cast<std::size_t>(o.window) || n < 2) return false;
  const Vector mean = mean_of(s.gradients);
  Vector variance = Vector::Zero(mean.size());
  for (const auto& g : s.gradients) variance += (g - mean).cwiseAbs2();
  variance /= n * (n - 1);
  if (standard_error.size() > 0) variance = variance.cwiseMax(standard_error.cwiseAbs2());
  variance = variance.cwiseMax(o.tolerance * o.tolerance);
  return (mean.array().square() / variance.array().max(1e-300)).sum() <=
         static_cast<double>(mean.size());
}

}  // namespace

StochasticResult descend(const NoisyObjective& f, StochasticState s, const Box& box,
                         const StochasticOptions& options,
                         const std::function<Action(const StochasticState&)>& after_step) {
  validate(options);
  const Index p = s.theta.size();
  box.check_size(p);
  if (p == 0) throw InvalidArgument("descend: there is no parameter to minimise over");
  if (s.first.size() != p) s.first = s.second = Vector::Zero(p);
  StochasticResult result;
  if (s.step == 0) s.theta = box.inside(s.theta);
  while (s.step < options.steps) {
    const auto estimate = f(s.theta, s.step);
    if (estimate.gradient.size() == 0) {
      result.stop = StopReason::interrupted;
      break;
    }
    if (!estimate.gradient.allFinite()) {
      result.stop = StopReason::breakdown;
      break;
    }
    s.gradients.push_back(estimate.gradient);
    s.thetas.push_back(s.theta);
    if (s.gradients.size() > static_cast<std::size_t>(options.window)) {
      s.gradients.erase(s.gradients.begin());
      s.thetas.erase(s.thetas.begin());
    }
    s.theta = box.inside(s.theta + step_of(s, estimate.gradient, options));
    ++s.step;
    if (within_noise(s, estimate.standard_error, options)) {
      result.stop = StopReason::converged;
      s.theta = mean_of(s.thetas);
    }
    if (after_step && after_step(s) == Action::stop) {
      result.stop = StopReason::interrupted;
      break;
    }
    if (result.stop == StopReason::converged) break;
  }
  result.theta = s.theta;
  result.steps = s.step;
  return result;
}

}  // namespace mercer::optim
