#include "mercer/training/gradients.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"

namespace mercer::training {

GradientsBySolves::GradientsBySolves(Search& search)
    : search_(search),
      rows_(search.rows(search.choice().rows)),
      problem_(search.problem_on(rows_)),
      method_(inference::make(inference::evidence_method(problem_, inference::EvidenceBy::solves),
                              problem_, search.setup(rows_))) {}

inference::Evidence GradientsBySolves::evaluate(ConstVectorView theta, const Request& request) {
  problem_.set_log_parameters(theta);
  inference::Evidence estimate;
  const Observer observer = [&](const Iteration& it) {
    stopped_ = stopped_ || search_.stopped("learn (all rows)", -1,
                                           fmt::format("step {}, iteration {} of its solves",
                                                       count() + 1, it.number));
    return stopped_ ? Action::stop : Action::proceed;
  };
  try {
    estimate = method_->evaluate(
        problem_, {.tolerance = request.tolerance, .error_passes = request.error_passes}, observer);
  } catch (const Interrupted&) {  // in the middle of a product or a factorisation
    stopped_ = true;
  }
  auto& report = search_.report;
  report.matvecs += estimate.matvecs;
  if (stopped_ || estimate.gradient.size() == 0) {
    stopped_ = true;
    estimate.gradient.resize(0);
    return estimate;
  }
  ++evaluated_;
  report.loose_gradients += estimate.stop != StopReason::converged;
  report.gradient = estimate.gradient;
  if (estimate.standard_error.size() > 0) report.standard_error = estimate.standard_error;
  report.history.push_back({.number = count(),
                            .seconds = search_.seconds(),
                            .gradient_norm = estimate.gradient.norm(),
                            .tolerance = request.tolerance,
                            .stop = estimate.stop,
                            .relative_residual = estimate.relative_residual,
                            .iterations = estimate.iterations,
                            .matvecs = estimate.matvecs});
  return estimate;
}

}  // namespace mercer::training
