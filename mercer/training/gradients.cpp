#include "mercer/training/gradients.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"

namespace mercer::training {
namespace {

// Products with all columns of an evaluation beside those of its iterations: residuals in double,
// and the passes with derivatives.
constexpr double kProductsBeside = 6;

}  // namespace

GradientsBySolves::GradientsBySolves(Search& search)
    : GradientsBySolves(search, search.choice().rows) {}

GradientsBySolves::GradientsBySolves(Search& search, Index rows)
    : search_(search),
      rows_(search.rows(rows)),
      problem_(search.problem_on(rows_)),
      method_(inference::make(inference::evidence_method(problem_, inference::EvidenceBy::solves),
                              problem_, search.setup(rows_))) {}

double usual_products(double columns) {
  return kUsualIterations * columns + kPassProducts * (1 + kErrorPasses);
}

Index GradientsBySolves::columns() const {
  return rows_.functions() *
         (1 + inference::mean_basis_size(problem_.mean, rows_.x.cols()) + search_.options().probes);
}

double GradientsBySolves::share() const {
  const double part =
      static_cast<double>(rows_.size()) / static_cast<double>(search_.choice().rows);
  return part * part;
}

inference::Evidence GradientsBySolves::evaluate(ConstVectorView theta, const Request& request) {
  problem_.set_log_parameters(theta);
  inference::Evidence estimate;
  auto& report = search_.report;
  const auto& budget = search_.choice().budget;
  const auto stage = search_.stage(rows_);
  const double passes = kPassProducts * (1 + request.error_passes);
  const double after = passes + kProductsBeside * static_cast<double>(columns());
  // By count, not by the clock: the same bits on any machine.
  double products = 0;
  int before = 0, last = 0;  // iterations of the solves before the present one, and of that
  const auto lasts = [&] {
    return !budget ||
           report.products + share() * (products + after) <= static_cast<double>(*budget);
  };
  over_budget_ = !lasts();
  if (over_budget_) return estimate;
  const Observer observer = [&](const Iteration& it) {
    stopped_ = stopped_ || search_.stopped(stage, -1,
                                           fmt::format("step {}, iteration {} of its solves",
                                                       report.gradients() + 1, it.number));
    if (it.number < last) before += last;
    last = it.number;
    products = (before + last) * static_cast<double>(columns());
    over_budget_ = over_budget_ || !lasts();
    return stopped_ || over_budget_ ? Action::stop : Action::proceed;
  };
  try {
    estimate = method_->evaluate(
        problem_, {.tolerance = request.tolerance, .error_passes = request.error_passes}, observer);
  } catch (const Interrupted&) {  // in the middle of a product or a factorisation
    stopped_ = true;
  }
  report.matvecs += estimate.matvecs;
  if (over_budget_ || estimate.gradient.size() == 0) {
    report.products += share() * products;
    stopped_ = stopped_ || !over_budget_;
    estimate.gradient.resize(0);
    return estimate;
  }
  report.products += share() * (static_cast<double>(estimate.matvecs) + passes);
  if (stopped_) {
    estimate.gradient.resize(0);
    return estimate;
  }
  report.loose_gradients += estimate.stop != StopReason::converged;
  report.gradient = estimate.gradient;
  report.gradient_rows = rows_.size();
  if (estimate.standard_error.size() > 0) report.standard_error = estimate.standard_error;
  report.history.push_back({.number = static_cast<int>(report.gradients()) + 1,
                            .rows = rows_.size(),
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
