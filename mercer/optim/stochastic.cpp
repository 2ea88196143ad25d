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

// Where the whole window was at a bound, a step out of the box is no reason to go on.
Vector free_part(Vector g, const std::vector<Vector>& thetas, const Box& box) {
  for (Index i = 0; i < g.size(); ++i)
    if (std::all_of(thetas.begin(), thetas.end(),
                    [&](const Vector& theta) { return box.blocks(i, theta(i), -g(i)); }))
      g(i) = 0;
  return g;
}

// The mean gradient of the window against its noise: sum (mean/sigma)^2 <= p with the standard
// errors of the estimates. Where they are not known only the tolerance counts: the spread within
// the window is mostly the way that was gone in it.
bool within_noise(const StochasticState& s, const Vector& standard_error, const Box& box,
                  const StochasticOptions& o) {
  if (s.gradients.size() < static_cast<std::size_t>(o.window)) return false;
  const Vector mean = free_part(mean_of(s.gradients), s.thetas, box);
  Vector sigma = Vector::Constant(mean.size(), std::max(o.tolerance, 1e-150));
  if (standard_error.size() > 0) sigma = sigma.cwiseMax(standard_error);
  return mean.cwiseQuotient(sigma).squaredNorm() <= static_cast<double>(mean.size());
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
  while (s.step < options.steps && !s.converged) {
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
    if (within_noise(s, estimate.standard_error, box, options)) {
      s.converged = true;
      s.theta = mean_of(s.thetas);
    }
    if (after_step && after_step(s) == Action::stop) {
      result.stop = StopReason::interrupted;
      break;
    }
  }
  if (s.converged) result.stop = StopReason::converged;
  result.theta = s.theta;
  result.steps = s.step;
  return result;
}

}  // namespace mercer::optim
