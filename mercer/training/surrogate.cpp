#include "mercer/training/surrogate.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mercer::training {

Surrogate::Surrogate(Search& search, const inference::Observations& rows, const Options& options)
    : search_(search), rows_(rows), options_(options), problem_(search.problem_on(rows)) {
  auto setup = search.setup(rows);
  if (options.neighbours) setup.neighbours = std::min(*options.neighbours, rows.size() - 1);
  method_ = inference::make(inference::evidence_method(problem_, inference::EvidenceBy::surrogate),
                            problem_, setup);
}

void Surrogate::renew(const Vector& theta) {
  neighbours_at_ = theta;
  problem_.set_log_parameters(theta);
  method_->renew(problem_);
  last_at_.resize(0);
}

inference::Evidence Surrogate::evaluate(ConstVectorView theta, bool gradient) {
  if (gradient && last_at_.size() == theta.size() && last_at_ == theta) return last_;
  problem_.set_log_parameters(theta);
  auto out = method_->evaluate(problem_, {.gradient = gradient});
  auto& report = search_.report;
  ++report.surrogate_evaluations;
  report.raised_conditionals = std::max(report.raised_conditionals, out.raised_conditionals);
  if (gradient) {
    last_at_ = theta;
    last_ = out;
  }
  return out;
}

Vector Surrogate::climb(const Vector& start, const Discrepancy& correction, const optim::Box& box,
                        int steps, double gain) {
  const double entries = Search::entries(rows_);
  Vector best = start;
  double best_value = HUGE_VAL;
  const optim::Objective f = [&](ConstVectorView theta, VectorView gradient) {
    const auto v = evaluate(theta);
    gradient = -(v.gradient + correction.at(theta)) / entries;
    const double value = -(v.value + correction.integral(theta)) / entries;
    if (value < best_value) {
      best_value = value;
      best = theta;
    }
    return value;
  };
  optim::LbfgsOptions options;
  options.max_iterations = steps;
  options.value_tolerance = gain / entries;
  const Index p = start.size();
  const auto here = evaluate(start);
  const Matrix hessian = here.information + Matrix::Identity(p, p) - correction.slope();
  if (hessian.allFinite()) {
    options.hessian = hessian / entries;
    options.gain_tolerance = gain / entries;
  }
  const auto result = optim::lbfgs(f, start, box, options, [&](const Iteration& it) {
    if (!options_.on_trial) search_.remember(best);
    return search_.stopped(
               "learn (surrogate)", -1,
               fmt::format("step {}, log likelihood about {:.6g}", it.number, -it.value * entries))
               ? Action::stop
               : Action::proceed;
  });
  stop_ = result.stop;
  return result.theta;
}

Vector Surrogate::maximise(const Vector& theta, int steps, double gain) {
  const Discrepancy none(theta.size());
  renew(theta);
  Vector first = climb(theta, none, search_.box(), steps, std::max(kCoarseGain, gain));
  if (stop_ == StopReason::interrupted) return first;
  renew(first);
  return climb(first, none, search_.box(), steps, gain);
}

}  // namespace mercer::training
