#include "mercer/training/gradients.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::training {
namespace {

// Products with all columns of an evaluation beside those of its iterations: residuals in double,
// and the passes with derivatives.
constexpr double kProductsBeside = 6;
// A gradient from solves with a larger residual than this says nothing.
constexpr double kUsableResidual = 0.1;
// Of the products of a factorisation, that solves may take before they are given up for one.
constexpr double kPatience = 0.5;

}  // namespace

GradientsBySolves::GradientsBySolves(Search& search)
    : GradientsBySolves(search, search.choice().rows) {}

GradientsBySolves::GradientsBySolves(Search& search, Index rows)
    : search_(search),
      rows_(search.rows(rows)),
      problem_(search.problem_on(rows_)),
      method_(
          search.choice().approximation.empty()
              ? inference::make(inference::evidence_method(problem_, inference::EvidenceBy::solves),
                                problem_, search.setup(rows_))
              : search.approximation(rows_, problem_, problem_.log_parameters())),
      most_factored_(search.choice().factorable_rows) {
  if (!search.choice().approximation.empty()) search.use(method_.get());
}

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

bool GradientsBySolves::factorable() const { return rows_.size() <= most_factored_; }

std::unique_ptr<inference::Inference> GradientsBySolves::direct() const {
  return inference::make(inference::evidence_method(problem_, inference::EvidenceBy::factorisation),
                         problem_, search_.setup(rows_));
}

// With Gaussian noise a factorisation has nothing to go on from, and its memory is for others in
// between. Another likelihood's goes on from the last mode and factor.
void GradientsBySolves::factor() {
  factored_ = true;
  if (!problem_.gaussian()) method_ = direct();
}

double GradientsBySolves::factored_products() const {
  const auto& all = search_.choice();
  const Index d = rows_.x.cols();
  const auto speeds = inference::nominal_speeds(problem_.kernel, d);
  const auto& direct = inference::methods().find(
      inference::evidence_method(problem_, inference::EvidenceBy::factorisation));
  const auto cost =
      direct.cost({.n = rows_.size(),
                   .d = d,
                   .functions = {rows_.functions(), problem_.likelihood->coupled() != nullptr},
                   .parameters = problem_.kernel.num_parameters(),
                   .speed = speeds});
  const double product =
      inference::product_seconds(speeds, all.rows, all.system.op, all.system.precision, columns()) /
      static_cast<double>(columns());
  return cost.seconds / product;
}

void GradientsBySolves::record(const inference::Evidence& estimate, double tolerance) {
  auto& report = search_.report;
  report.gradient = estimate.gradient;
  report.gradient_rows = rows_.size();
  if (estimate.standard_error.size() > 0) report.standard_error = estimate.standard_error;
  report.history.push_back(
      {.factored = factored_,
       .number = static_cast<int>(report.gradients()) + 1,
       .rows = rows_.size(),
       .seconds = search_.seconds(),
       .gradient_norm = estimate.gradient.norm(),
       .log_likelihood = factored_ ? std::optional(estimate.value) : std::nullopt,
       .tolerance = tolerance,
       .stop = estimate.stop,
       .relative_residual = estimate.relative_residual,
       .iterations = estimate.iterations,
       .matvecs = estimate.matvecs});
}

inference::Evidence GradientsBySolves::by_factorisation() {
  auto& report = search_.report;
  const auto& budget = search_.choice().budget;
  inference::Evidence exact;
  const double products = factored_products();
  over_budget_ = budget && report.products + products > static_cast<double>(*budget);
  if (over_budget_) return exact;
  stopped_ = stopped_ ||
             search_.stopped(search_.stage(rows_), -1,
                             fmt::format("step {}, by a factorisation", report.gradients() + 1));
  if (stopped_) return exact;
  const auto fresh = problem_.gaussian() ? direct() : nullptr;
  try {
    exact = (fresh ? fresh : method_)->evaluate(problem_, {});
  } catch (const Interrupted&) {
    stopped_ = true;
    return {};
  } catch (const NotPositiveDefinite&) {  // to rounding
    failed_ = true;
    ++report.failed_gradients;
    return {};
  }
  report.products += products;
  exact.standard_error = Vector::Zero(exact.gradient.size());
  record(exact, 0);
  return exact;
}

inference::Evidence GradientsBySolves::evaluate(ConstVectorView theta, const Request& request) {
  problem_.set_log_parameters(theta);
  failed_ = false;
  if (factored_) return by_factorisation();
  inference::Evidence estimate;
  auto& report = search_.report;
  const auto& budget = search_.choice().budget;
  const auto stage = search_.stage(rows_);
  const double passes = kPassProducts * (1 + request.error_passes);
  const double after = passes + kProductsBeside * static_cast<double>(columns());
  // Solves that have taken half as long as a factorisation are given up for one.
  const double most =
      request.must_succeed && factorable() ? kPatience * factored_products() : HUGE_VAL;
  bool too_slow = false;
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
    too_slow = share() * products > most;
    return stopped_ || over_budget_ || too_slow ? Action::stop : Action::proceed;
  };
  try {
    estimate = method_->evaluate(
        problem_, {.tolerance = request.tolerance, .error_passes = request.error_passes}, observer);
  } catch (const Interrupted&) {  // in the middle of a product or a factorisation
    stopped_ = true;
  }
  report.matvecs += estimate.matvecs;
  if (too_slow && !stopped_ && !over_budget_) {
    report.products += share() * products;
    factored_ = true;
    return by_factorisation();
  }
  return usable(std::move(estimate), request, products);
}

// What solves have found, unless they were stopped or failed; `products` are those of iterations.
inference::Evidence GradientsBySolves::usable(inference::Evidence estimate, const Request& request,
                                              double products) {
  auto& report = search_.report;
  if (over_budget_ || estimate.gradient.size() == 0) {
    report.products += share() * products;
    stopped_ = stopped_ || !over_budget_;
    estimate.gradient.resize(0);
    return estimate;
  }
  report.products += share() * (static_cast<double>(estimate.matvecs) +
                                kPassProducts * (1 + request.error_passes));
  if (stopped_) {
    estimate.gradient.resize(0);
    return estimate;
  }
  if (request.must_succeed && estimate.stop != StopReason::converged &&
      !(estimate.relative_residual <= kUsableResidual)) {
    ++report.failed_gradients;
    factored_ = factorable();
    if (factored_) return by_factorisation();
    failed_ = true;
    estimate.gradient.resize(0);
    return estimate;
  }
  report.loose_gradients += estimate.stop != StopReason::converged;
  record(estimate, request.tolerance);
  return estimate;
}

}  // namespace mercer::training
