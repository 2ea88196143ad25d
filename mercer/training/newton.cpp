// Newton's steps on levels of more and more rows, with the Hessian of few rows that every gradient
// corrects. With the same probes every time, gradients by solves are those of one function, close
// to the evidence.
//
// Levels are those of regression (levels.hpp). A level begins where the last one ended, with its
// Hessian per entry of y and the posterior mean of its latent functions. Levels that the plan has
// found quick to factor are factored: no noise.
//
// What fewer rows say of the maximum is a prior for that of more: N(theta_0, 2E H^-1), where E is
// the gain per parameter that is expected of the level. A gradient with noise of covariance S says
// no more than that, so S (theta - theta_0) / (2E) is added to it. Its zero is the best guess given
// both, and steps along directions of much noise are short. Without noise nothing is added.
//
// Cost: a Hessian of fewer rows by differences, and usually two or three gradients on all rows.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

#include "mercer/optim/quasi_newton.hpp"
#include "mercer/training/archive.hpp"
#include "mercer/training/gradients.hpp"
#include "mercer/training/levels.hpp"
#include "mercer/training/starts.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

// Gradients on the last level, and on one that is factored.
constexpr int kMostSteps = 20, kMostFactored = 12;
// A typical Hessian per entry of y, where none is known.
constexpr double kTypicalHessian = 0.05;

class Newton {
 public:
  explicit Newton(Search& search)
      : search_(search),
        levels_(search.choice()),
        factorable_rows_(search.choice().factorable_rows) {}
  Vector run(const Vector& start);

 private:
  Matrix first_hessian(const Vector& start);
  void begin(const Vector& start);
  void resume(const Vector& start);
  void enter(std::size_t level);
  void visit_state(Archive& archive);
  void keep();
  optim::NoisyGradient gradient(ConstVectorView theta, int step);
  void find_prior(const optim::NoisyGradient& first);
  optim::QuasiNewtonResult climb();
  Action after_step(const optim::QuasiNewtonStep& step, int most);
  void next_level(const optim::QuasiNewtonResult& result);
  bool last() const { return levels_.last(level_); }
  bool ended() const { return at_->stopped() || at_->over_budget(); }

  Search& search_;
  Levels levels_;
  std::unique_ptr<GradientsBySolves> at_;
  Matrix prior_;           // S / (2E)
  bool in_noise_ = false;  // the level has nothing to gain that noise would not show
  Index loaded_ = 0;       // gradients of this level that a checkpoint knew
  // What a checkpoint holds: see visit_state.
  std::size_t level_ = 0;
  Vector theta_;                // where the level began
  Matrix hessian_;              // there, per entry of y
  double expected_ = HUGE_VAL;  // gain of the level
  Index before_ = 0;            // gradients of the levels before
  // [gradient; standard error] of every step of the level: an interrupted run is played back from
  // it.
  Matrix history_;
  Index factorable_rows_ = 0;  // at the start of the run
};

Matrix Newton::first_hessian(const Vector& start) {
  Matrix out;
  const auto& levels = search_.choice().levels;
  if (!levels.empty()) {
    const bool many = start.size() > kMostNewtonParameters &&
                      !hessian_pays(levels.back(), levels_.rows(0), start.size());
    out = search_.hessian(search_.rows(many ? std::min(kFewRows, levels.back()) : levels.back()),
                          start);
  }
  if (out.size() == 0) out = kTypicalHessian * Matrix::Identity(start.size(), start.size());
  return out;
}

void Newton::enter(std::size_t level) {
  level_ = level;
  at_.reset();  // first: both at once may not fit
  at_ = std::make_unique<GradientsBySolves>(search_, levels_.rows(level_));
  at_->limit_factorisations(factorable_rows_);
  if (!last() && at_->factorable()) at_->factor();
}

void Newton::begin(const Vector& start) {
  const auto& levels = search_.choice().levels;
  enter(0);
  if (levels.empty()) return;
  const double r = static_cast<double>(levels_.rows(0)) / static_cast<double>(levels.back());
  expected_ = Levels::gain_on_more(kNoGain, std::max(1.0, r), start.size());
  at_->method().start_from(search_.warm_start(search_.rows(std::min(kFewRows, levels.back())),
                                              at_->rows().size(), start));
}

void Newton::visit_state(Archive& archive) {
  auto& report = search_.report;
  archive.number("before", before_);
  archive.number("expected", expected_);
  archive.number("products", report.products);
  archive.number("loose_gradients", report.loose_gradients);
  archive.number("failed_gradients", report.failed_gradients);
  archive.number("gradient_rows", report.gradient_rows);
  archive.array("theta", theta_);
  archive.array("hessian", hessian_);
  archive.array("history", history_);
  archive.array("gradient", report.gradient);
  archive.array("standard_error", report.standard_error);
  archive.method(at_->method(), at_->problem());
}

void Newton::keep() {
  Archive archive;
  archive.number("level", level_);
  archive.number("factorable_rows", factorable_rows_);
  visit_state(archive);
  search_.keep(archive.state());
}

void Newton::resume(const Vector& start) {
  Archive archive(search_.trainer_state());
  archive.number("level", level_);
  archive.number("factorable_rows", factorable_rows_);
  if (level_ >= levels_.size()) throw ModelFileError("the checkpoint is damaged: no such level");
  enter(level_);
  visit_state(archive);
  if (history_.rows() != 2 * start.size() || theta_.size() != start.size())
    throw ModelFileError("the checkpoint is damaged: it is of another number of parameters");
  loaded_ = history_.cols();
  search_.report.resumed_gradients = static_cast<int>(before_ + loaded_);
  search_.report.steps += static_cast<int>(before_);
  search_.remember(theta_);
}

// Of minus the evidence per entry of y; empty when stopped. Where there is none it is not a number.
optim::NoisyGradient Newton::gradient(ConstVectorView theta, int step) {
  const Index p = theta.size();
  if (step >= history_.cols()) {
    const auto estimate = at_->evaluate(theta, {kTightTolerance, kErrorPasses});
    if (ended()) return {};
    const double entries = at_->entries(), none = std::numeric_limits<double>::quiet_NaN();
    if (at_->failed()) return {Vector::Constant(p, none), {}};
    history_.conservativeResize(2 * p, step + 1);
    history_.col(step).head(p) = -estimate.gradient / entries;
    history_.col(step).tail(p) = estimate.standard_error.size() > 0
                                     ? Vector(estimate.standard_error / entries)
                                     : Vector::Constant(p, none);
  }
  const Vector error = history_.col(step).tail(p);
  Vector out = history_.col(step).head(p);
  if (prior_.size() > 0) out += prior_ * (theta - theta_);
  return {std::move(out), error.allFinite() ? error : Vector()};
}

// From the first gradient of the level, which says how much noise there is. One measurement of each
// entry is little to go by: half of S is of the size that all of them have together.
void Newton::find_prior(const optim::NoisyGradient& first) {
  const auto p = static_cast<double>(theta_.size());
  const double each = expected_ / (p * at_->entries());
  if (first.standard_error.size() == 0 || !std::isfinite(each)) return;
  const Matrix own = first.standard_error.cwiseAbs2().asDiagonal();
  prior_ = own / (2 * each);
  const Eigen::LLT<Matrix> positive(hessian_);
  if (positive.info() != Eigen::Success) return;
  const double noise = 0.5 * positive.solve(own).trace();
  prior_ = 0.5 * prior_ + 0.5 * noise / (p * each) * hessian_;
}

Action Newton::after_step(const optim::QuasiNewtonStep& step, int most) {
  auto& report = search_.report;
  ++report.steps;
  if (step.accepted) search_.reached(step.theta);
  if (step.number > loaded_) {
    report.history.back().predicted_gain = at_->entries() * step.gain;
    report.history.back().noise_gain = at_->entries() * step.noise;
    keep();
  }
  if (search_.stopped(search_.stage(at_->rows()),
                      levels_.fraction(level_, static_cast<double>(step.number) / most),
                      fmt::format("step {}", before_ + step.number)))
    at_->stop();
  in_noise_ = !last() && step.accepted && step.gain <= step.noise;
  return at_->stopped() || in_noise_ ? Action::stop : Action::proceed;
}

// On one level.
optim::QuasiNewtonResult Newton::climb() {
  optim::QuasiNewtonResult out;
  out.theta = theta_;
  out.hessian = hessian_;
  prior_.resize(0, 0);
  in_noise_ = false;
  const auto first = gradient(theta_, 0);
  const bool none = first.gradient.size() == 0;
  if (none || !first.gradient.allFinite()) {
    out.stop = none ? StopReason::interrupted : StopReason::breakdown;
    return out;
  }
  find_prior(first);
  optim::QuasiNewtonOptions options;
  options.steps = search_.options().steps.value_or(kMostSteps);
  if (!last())
    options.steps = std::min(options.steps, at_->factored() ? kMostFactored : kMostOnLevel);
  options.gain_tolerance =
      std::max(kNoGain, levels_.gain_to_leave(level_, theta_.size())) / at_->entries();
  const Matrix hessian = prior_.size() > 0 ? Matrix(hessian_ + prior_) : hessian_;
  out = optim::quasi_newton(
      [this](ConstVectorView theta, int step) { return gradient(theta, step); }, theta_, hessian,
      search_.box(), options,
      [&](const optim::QuasiNewtonStep& step) { return after_step(step, options.steps); });
  if (prior_.size() > 0) out.hessian -= prior_;
  return out;
}

// What the last gradient says beyond its noise is not lost: the step that follows is taken.
void Newton::next_level(const optim::QuasiNewtonResult& result) {
  const double r =
      static_cast<double>(levels_.rows(level_ + 1)) / static_cast<double>(levels_.rows(level_));
  const bool failed = result.stop == StopReason::breakdown;
  const auto known = failed ? inference::WarmStart() : at_->method().warm_start();
  expected_ = Levels::gain_on_more(at_->entries() * result.gain, r, theta_.size());
  theta_ = result.theta;
  if (!failed && result.gain > result.noise) theta_ = search_.box().inside(theta_ + result.step);
  hessian_ = result.hessian;
  before_ += history_.cols();
  history_.resize(2 * theta_.size(), 0);
  loaded_ = 0;
  enter(level_ + 1);
  at_->method().start_from(search_.on_more_rows(known, at_->rows().size()));
  search_.reached(theta_);
}

Vector Newton::run(const Vector& start) {
  theta_ = search_.box().inside(start);
  history_.resize(2 * start.size(), 0);
  // Before the state is loaded: an exact evaluation is answered from the log of the search.
  hessian_ = first_hessian(start);
  if (search_.trainer_state().empty())
    begin(start);
  else
    resume(start);
  auto result = climb();
  while (!last() && !ended()) {
    next_level(result);
    result = climb();
  }
  auto& report = search_.report;
  report.stop = at_->over_budget() ? StopReason::iteration_limit : result.stop;
  report.budget_spent = at_->over_budget();
  if (last() && at_->rows().size() == search_.all().size())
    search_.warm = at_->method().warm_start();
  return result.theta;
}

}  // namespace

TrainerInfo newton_info() {
  return {.name = "newton",
          .summary = "Newton's steps on levels of more and more rows, gradients by solves",
          .by_solves = true,
          .from_start_values = false,
          .on_surrogate = false,
          .in_levels = true,
          .warns_at_limit = true,
          .words = "Newton's steps",
          .preference =
              [](const inference::Problem& problem) {
                return problem.kernel.num_parameters() <= kMostNewtonParameters ? 2 : 0;
              },
          .refusal = [](const inference::Problem& problem) -> std::string {
            if (!problem.gaussian()) return {};
            return "`train=newton` is for classes, counts and outliers; with Gaussian noise "
                   "`train=lbfgs` does better: it corrects the Vecchia likelihood by exact "
                   "gradients";
          },
          .run = [](Search& search, const Vector& start) { return Newton(search).run(start); }};
}

}  // namespace mercer::training
