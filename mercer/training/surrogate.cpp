#include "mercer/training/surrogate.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mercer::training {

Surrogate::Surrogate(Search& search, const inference::Observations& rows, bool on_trial)
    : search_(search),
      rows_(rows),
      on_trial_(on_trial),
      problem_(search.problem_on(rows)),
      method_(
          inference::make(inference::evidence_method(problem_, inference::EvidenceBy::surrogate),
                          problem_, search.setup(rows))) {}

void Surrogate::renew(const Vector& theta) {
  neighbours_at_ = theta;
  problem_.set_log_parameters(theta);
  method_->renew(problem_);
}

inference::Evidence Surrogate::evaluate(ConstVectorView theta, bool gradient) {
  problem_.set_log_parameters(theta);
  auto out = method_->evaluate(problem_, {.gradient = gradient});
  auto& report = search_.report;
  ++report.surrogate_evaluations;
  report.raised_conditionals = std::max(report.raised_conditionals, out.raised_conditionals);
  return out;
}

Vector Surrogate::climb(const Vector& middle, const Vector& c, const optim::Box& box, int steps,
                        double gain) {
  const double entries = Search::entries(rows_);
  Vector best = middle;
  double best_value = HUGE_VAL;
  const optim::Objective f = [&](ConstVectorView theta, VectorView gradient) {
    const auto v = evaluate(theta);
    gradient = -(v.gradient + c) / entries;
    const double value = -(v.value + c.dot(theta - middle)) / entries;
    if (value < best_value) {
      best_value = value;
      best = theta;
    }
    return value;
  };
  optim::LbfgsOptions options;
  options.max_iterations = steps;
  options.value_tolerance = gain / entries;
  const auto result = optim::lbfgs(f, middle, box, options, [&](const Iteration& it) {
    if (!on_trial_) search_.remember(best);
    return search_.stopped(
               "learn (surrogate)", -1,
               fmt::format("step {}, log likelihood about {:.6g}", it.number, -it.value * entries))
               ? Action::stop
               : Action::proceed;
  });
  stop_ = result.stop;
  return result.theta;
}

Vector Surrogate::maximise(const Vector& theta, int steps) {
  const Vector none = Vector::Zero(theta.size());
  renew(theta);
  Vector first = climb(theta, none, search_.box(), steps, kCoarseGain);
  if (stop_ == StopReason::interrupted) return first;
  renew(first);
  return climb(first, none, search_.box(), steps, kFineGain);
}

}  // namespace mercer::training
