#include "mercer/models/laplace_training.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/exact_laplace.hpp"
#include "mercer/inference/laplace_gradient.hpp"
#include "mercer/models/checkpoint.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/optim/quasi_newton.hpp"
#include "mercer/optim/replay.hpp"
#include "mercer/optim/stochastic.hpp"

namespace mercer::models {
namespace {

constexpr double kLogBound = 11.512925464970229;  // 1e-5 .. 1e5 around the start
// Signal variance of classes, at most: |f| = 10 is already a chance of 5e-5. Where classes can be
// separated, Laplace's evidence likes it without bound, and its predictions come near 1/2.
constexpr double kMostClassVariance = 100;
// Of log evidence, that a climb on more rows may leave; the step of its differences; the
// evaluations that knowing the Hessian saves.
constexpr double kGainLeft = 0.01, kDifference = 0.05, kSavedEvaluations = 8;
constexpr int kExactSteps = 100, kDescentSteps = 40;
constexpr double kLooseTolerance = 1e-2, kTightTolerance = 1e-3;
// Steps of a descent: between measurements of the noise, and of tight solves at its end.
constexpr int kMeasureEvery = 5, kLastSteps = 10;
// Newton's steps by solves: at most so many, until so much log evidence is left to gain.
constexpr int kCorrections = 20;
constexpr double kGainBySolves = 0.1, kTypicalCurvature = 0.05;  // curvature: per entry of y
constexpr double kAdamRate = 0.1, kCheckpointSeconds = 1.0;

inference::NewtonOptions exact_newton() { return {.tolerance = 1e-4, .solve_tolerance = 1e-4}; }

class Trainer {
 public:
  Trainer(const inference::Problem& start, const inference::Observations& data, const Plan& plan,
          const LearnRequest& request)
      : problem_(start),
        data_(data),
        plan_(plan),
        options_(request.options),
        seed_(request.seed),
        identity_(request.identity),
        progress_(request.progress),
        on_step_(request.on_step),
        order_(Rng(seed_, "subset").permutation(data.size())) {
    set_bounds();
    load_checkpoint();
  }

  LaplaceTraining run();

 private:
  // The problem on these rows: on fewer more inputs may depend on each other, and a linear mean
  // must do without them.
  inference::Problem problem_on(const inference::Observations& rows) const {
    auto problem = problem_;
    if (rows.size() < data_.size())
      problem.trend_left_out = inference::dependent_inputs(problem.mean, rows.x);
    return problem;
  }
  inference::Observations rows(Index count) const {
    return count >= data_.size()
               ? data_
               : data_.rows(std::span(order_).first(static_cast<std::size_t>(count)));
  }
  // Of y, in what is learned from.
  double entries() const {
    return static_cast<double>(plan_.train_rows) * static_cast<double>(data_.functions());
  }
  void set_bounds();
  Vector random_start(int index) const;
  // Of a climb on more rows, from fewer; either may be empty.
  struct Hint {
    Matrix a;        // where to look for the first mode from
    Matrix hessian;  // per entry of y
  };
  optim::Objective objective(const inference::Observations& rows, inference::ExactLaplace& exact,
                             inference::Problem& problem);
  optim::MinimizeResult climb(const inference::Observations& rows, const Vector& start,
                              const std::string& stage, const Hint& hint);
  Matrix hessian(const inference::Observations& rows, const Vector& theta);
  Matrix mode_from(const inference::Observations& few, Index more, const Vector& theta);
  Hint hint_from(const inference::Observations& few, Index more, const Vector& theta);
  [[noreturn]] void interrupted();
  Vector learn_exactly();
  void learn_by_solves(const Vector& start);
  Vector descend(inference::LaplaceGradient& estimator, const Vector& start);
  Vector correct(inference::LaplaceGradient& estimator, const Vector& start);
  bool keep_going(int step, int steps);
  optim::NoisyGradient noisy_gradient(inference::LaplaceGradient& estimator, ConstVectorView theta,
                                      int step, double tolerance, bool measure);
  void load_checkpoint();
  void write_checkpoint();
  void tell(ConstVectorView theta);

  inference::Problem problem_;
  const inference::Observations& data_;
  const Plan& plan_;
  const TrainOptions& options_;
  std::uint64_t seed_, identity_;
  const ProgressCallback& progress_;
  const StepObserver& on_step_;
  std::vector<Index> order_;
  optim::Box box_;
  optim::ReplayLog log_;
  // Of a descent: [gradient; standard error] of every step, and what the next depends on.
  Matrix history_;
  inference::LaplaceGradient::State state_;
  inference::LaplaceMode warm_;  // a and beta of the last exact one, of the climb with this number
  Vector warm_theta_;
  std::vector<Index> left_out_;  // inputs that a linear mean does without on the rows of the solves
  int warm_climb_ = 0, climb_ = 0;
  Timer since_checkpoint_, timer_;
  double outside_ = 0;
  int told_ = 0;
  TrainReport report_;
  inference::LaplaceMode mode_;
};

void Trainer::set_bounds() {
  const Vector theta = problem_.log_parameters();
  Vector upper = theta.array() + kLogBound;
  const auto& kernel = problem_.kernel;
  if (problem_.likelihood->is_binary() && kernel.stationary()) {
    const auto variances = kernel.is_variance();
    for (Index p = 0; p < kernel.num_parameters(); ++p)
      if (variances[static_cast<std::size_t>(p)])
        upper(p) = std::max(std::log(kMostClassVariance), theta(p));
  }
  Vector lower = theta.array() - kLogBound;
  kernel.narrow_to_limits(lower, upper);
  box_ = optim::Box(std::move(lower), std::move(upper));
}

Vector Trainer::random_start(int index) const {
  Rng rng(seed_, "restart", static_cast<std::uint64_t>(index));
  Vector theta = problem_.log_parameters();
  const auto lengths = problem_.kernel.is_lengthscale();
  const double common = 0.7 * rng.normal();
  for (Index i = 0; i < theta.size(); ++i) {
    const bool length =
        i < problem_.kernel.num_parameters() && lengths[static_cast<std::size_t>(i)];
    theta(i) += length ? common + 0.4 * rng.normal() : 0.7 * rng.normal();
  }
  return box_.inside(theta);
}

void Trainer::tell(ConstVectorView theta) {
  if (!on_step_) return;
  const Timer outside;
  auto here = problem_;
  here.set_log_parameters(theta);
  on_step_(here, told_++, timer_.seconds() - outside_);
  outside_ += outside.seconds();
}

// Minus the log evidence of these rows, per entry of y; answered from the checkpoint as far as that
// goes. What is returned uses `exact` and `problem`.
optim::Objective Trainer::objective(const inference::Observations& rows,
                                    inference::ExactLaplace& exact, inference::Problem& problem) {
  const double share = 1 / static_cast<double>(rows.y.size());
  ++climb_;
  // A resumed run begins its first evaluation where the interrupted one would have.
  if (warm_climb_ == climb_) {
    problem.set_log_parameters(warm_theta_);
    exact.resume(problem, warm_.a, warm_.beta);
  }
  const optim::Objective live = [&, share](ConstVectorView theta, VectorView gradient) {
    problem.set_log_parameters(theta);
    const auto evidence = exact.evaluate(problem, true);
    warm_.a = evidence.mode.a;
    warm_.beta = evidence.mode.beta;
    warm_theta_ = theta;
    warm_climb_ = climb_;
    gradient = -share * evidence.gradient;
    return -share * evidence.value;
  };
  return log_.record(live, [&](const optim::ReplayLog&) {
    if (since_checkpoint_.seconds() > kCheckpointSeconds) write_checkpoint();
  });
}

void Trainer::interrupted() {
  write_checkpoint();
  throw Interrupted(interrupted_text(options_.checkpoint, log_.evaluations().size()));
}

optim::MinimizeResult Trainer::climb(const inference::Observations& rows, const Vector& start,
                                     const std::string& stage, const Hint& hint) {
  auto problem = problem_on(rows);
  inference::ExactLaplace exact(rows, exact_newton());
  if (hint.a.size() > 0) exact.start_at(hint.a);
  const auto f = objective(rows, exact, problem);
  Vector best = start;
  double best_value = HUGE_VAL;
  const bool all = rows.size() == data_.size();
  const optim::Objective watched = [&](ConstVectorView theta, VectorView gradient) {
    const double value = f(theta, gradient);
    if (value < best_value) {
      best_value = value;
      best = theta;
    }
    return value;
  };
  optim::LbfgsOptions options;
  options.max_iterations = options_.steps.value_or(kExactSteps);
  options.value_tolerance = 1e-7;
  options.hessian = hint.hessian;
  options.gain_tolerance = kGainLeft / static_cast<double>(rows.y.size());
  const Observer observer = [&](const Iteration& it) {
    if (all) tell(best);
    if (!progress_) return Action::proceed;
    const double done = static_cast<double>(it.number) / options.max_iterations;
    return progress_({stage, done, fmt::format("step {}, objective {:.5f}", it.number, it.value)});
  };
  optim::MinimizeResult result;
  try {
    result = optim::lbfgs(watched, start, box_, options, observer);
  } catch (const Interrupted&) {  // in the middle of a factorisation
    result.stop = StopReason::interrupted;
  }
  if (result.stop == StopReason::interrupted) interrupted();
  report_.steps += result.iterations;
  report_.evaluations += result.evaluations;
  report_.failed_evaluations += result.rejected_evaluations;
  report_.stop = result.stop;
  return result;
}

// By differences of the gradient; empty where it cannot be had.
Matrix Trainer::hessian(const inference::Observations& rows, const Vector& theta) {
  const Index p = theta.size();
  auto problem = problem_on(rows);
  inference::ExactLaplace exact(rows, exact_newton());
  const auto f = objective(rows, exact, problem);
  Vector here = Vector::Zero(p), there = here;
  Matrix out(p, p);
  try {
    ++report_.evaluations;
    if (!std::isfinite(f(theta, here))) return {};
    for (Index i = 0; i < p; ++i) {
      Vector moved = theta;
      const double step = theta(i) + kDifference > box_.upper()(i) ? -kDifference : kDifference;
      moved(i) += step;
      ++report_.evaluations;
      if (!std::isfinite(f(moved, there))) return {};
      out.col(i) = (there - here) / step;
      if (progress_ &&
          progress_({"learn (curvature)", static_cast<double>(i) / p, ""}) == Action::stop)
        throw Interrupted("interrupted at the curvature");
    }
  } catch (const Interrupted&) {
    interrupted();
  }
  return out.allFinite() ? Matrix(0.5 * (out + out.transpose())) : Matrix();
}

// The functions of few rows, as a of more; empty where they cannot be had.
Matrix Trainer::mode_from(const inference::Observations& few, Index more, const Vector& theta) {
  auto problem = problem_on(few);
  problem.set_log_parameters(theta);
  Matrix a = Matrix::Zero(more, few.functions());
  // All rows are as they come, fewer are the first of a random order.
  const bool in_order = more < data_.size() || few.size() == data_.size();
  try {
    const auto mode = inference::exact_laplace(problem, few, false, exact_newton()).mode;
    for (Index i = 0; i < few.size(); ++i)
      a.row(in_order ? i : order_[static_cast<std::size_t>(i)]) = mode.a.row(i);
  } catch (const NotPositiveDefinite&) {
    return {};
  } catch (const Interrupted&) {
    interrupted();
  }
  return a;
}

// What few rows say to the climb on more: where their functions lie, and how the evidence bends.
Trainer::Hint Trainer::hint_from(const inference::Observations& few, Index more,
                                 const Vector& theta) {
  Hint hint;
  hint.a = mode_from(few, more, theta);
  const double growth = static_cast<double>(more) / static_cast<double>(few.size());
  if (static_cast<double>(theta.size()) <= kSavedEvaluations * growth * growth * growth)
    hint.hessian = hessian(few, theta);
  return hint;
}

Vector Trainer::learn_exactly() {
  const Index most = plan_.train_method == "exact" ? plan_.train_rows : plan_.start_rows;
  Vector best = box_.inside(problem_.log_parameters());
  tell(best);
  const Index few = std::min(kLaplaceStartRows, most);
  double best_value = HUGE_VAL;
  optim::MinimizeResult result;
  const auto first_rows = rows(few);
  for (int start = 0; start <= options_.restarts; ++start) {
    result = climb(first_rows, start == 0 ? best : random_start(start), "learn (few rows)", {});
    if (start == 0 || result.value < best_value) {
      best_value = result.value;
      best = result.theta;
    }
  }
  report_.restarts = options_.restarts;
  if (most > few) best = climb(rows(most), best, "learn", hint_from(first_rows, most, best)).theta;
  if (most == data_.size()) mode_ = warm_;
  return best;
}

optim::NoisyGradient Trainer::noisy_gradient(inference::LaplaceGradient& estimator,
                                             ConstVectorView theta, int step, double tolerance,
                                             bool measure) {
  const Index p = theta.size();
  if (step < history_.cols()) {  // answered from the checkpoint
    ++report_.resumed_gradients;
    const Vector error = history_.col(step).tail(p);
    return {history_.col(step).head(p), error.allFinite() ? error : Vector()};
  }
  const Timer timer;
  auto here = problem_;
  here.set_log_parameters(theta);
  here.trend_left_out = left_out_;
  const auto estimate = estimator.estimate(here, tolerance, measure, [&](const Iteration&) {
    if (!progress_) return Action::proceed;
    return progress_({"learn (all rows)", -1, fmt::format("solving for step {}", step + 1), true});
  });
  if (estimate.gradient.size() == 0) return {};
  const double share = 1 / entries();
  optim::NoisyGradient out{-share * estimate.gradient, share * estimate.standard_error};
  report_.history.push_back({.number = step + 1,
                             .seconds = timer.seconds(),
                             .gradient_norm = estimate.gradient.norm(),
                             .tolerance = tolerance,
                             .stop = estimate.stop,
                             .relative_residual = estimate.relative_residual,
                             .iterations = estimate.iterations,
                             .matvecs = estimate.matvecs});
  report_.loose_gradients += estimate.stop != StopReason::converged;
  report_.matvecs += estimate.matvecs;
  report_.gradient = estimate.gradient;
  if (estimate.standard_error.size() > 0) report_.standard_error = estimate.standard_error;
  history_.conservativeResize(2 * p, step + 1);
  history_.col(step).head(p) = out.gradient;
  history_.col(step).tail(p) = out.standard_error.size() > 0
                                   ? out.standard_error
                                   : Vector::Constant(p, std::numeric_limits<double>::quiet_NaN());
  state_ = estimator.state();
  return out;
}

// After every step by solves.
bool Trainer::keep_going(int step, int steps) {
  ++report_.steps;
  if (since_checkpoint_.seconds() > kCheckpointSeconds) write_checkpoint();
  if (!progress_) return true;
  return progress_({"learn (all rows)", static_cast<double>(step) / steps,
                    fmt::format("step {}", step), true}) == Action::proceed;
}

Vector Trainer::descend(inference::LaplaceGradient& estimator, const Vector& start) {
  optim::StochasticOptions rule;
  rule.rule = plan_.train_method == "adagrad" ? optim::StepRule::adagrad : optim::StepRule::adam;
  rule.rate = rule.rule == optim::StepRule::adam ? kAdamRate : 1.0;
  rule.steps = options_.steps.value_or(kDescentSteps);
  optim::StochasticState from;
  from.theta = start;
  const auto result = optim::descend(
      [&](ConstVectorView theta, int step) {
        return noisy_gradient(estimator, theta, step,
                              step + kLastSteps >= rule.steps ? kTightTolerance : kLooseTolerance,
                              step % kMeasureEvery == 0 || step + kLastSteps >= rule.steps);
      },
      from, box_, rule,
      [&](const optim::StochasticState& state) {
        tell(state.theta);
        return keep_going(state.step, rule.steps) ? Action::proceed : Action::stop;
      });
  report_.stop = result.stop;
  return result.theta;
}

// Newton's steps with the Hessian of fewer rows, which the gradients on all rows correct. With the
// same probes every time they are those of one function, close to the evidence.
Vector Trainer::correct(inference::LaplaceGradient& estimator, const Vector& start) {
  const bool few = start.size() > kMostDirections;
  Matrix hessian_start;
  if (plan_.start_rows > 0)
    hessian_start = hessian(
        rows(few ? std::min(kLaplaceStartRows, plan_.start_rows) : plan_.start_rows), start);
  if (hessian_start.size() == 0)
    hessian_start = kTypicalCurvature * Matrix::Identity(start.size(), start.size());
  optim::QuasiNewtonOptions options;
  options.steps = options_.steps.value_or(kCorrections);
  options.gain_tolerance = kGainBySolves / entries();
  const auto result = optim::quasi_newton(
      [&](ConstVectorView theta, int step) {
        return noisy_gradient(estimator, theta, step, kTightTolerance, true);
      },
      start, hessian_start, box_, options,
      [&](const optim::QuasiNewtonStep& step) {
        if (step.accepted) tell(step.theta);
        if (!report_.history.empty() && report_.history.back().number == step.number) {
          report_.history.back().predicted_gain = entries() * step.gain;
          report_.history.back().noise_gain = entries() * step.noise;
        }
        return keep_going(step.number, options.steps) ? Action::proceed : Action::stop;
      });
  report_.stop = result.stop;
  return result.theta;
}

void Trainer::learn_by_solves(const Vector& start) {
  inference::LaplaceEstimatorOptions options;
  options.probes = options_.probes;
  options.system = plan_.train_system;
  options.seed = seed_;
  const auto chosen = rows(plan_.train_rows);
  left_out_ = problem_on(chosen).trend_left_out;
  inference::LaplaceGradient estimator(chosen, options);
  if (history_.cols() > 0)
    estimator.resume(state_);
  else if (plan_.start_rows > 0)
    estimator.resume({.mode = mode_from(rows(std::min(kLaplaceStartRows, plan_.start_rows)),
                                        chosen.size(), start)});
  problem_.set_log_parameters(plan_.train_method == "newton" ? correct(estimator, start)
                                                             : descend(estimator, start));
  if (chosen.size() == data_.size()) {  // where the final mode is looked for from
    mode_.a = estimator.state().mode;
    mode_.f = estimator.state().latent;
  }
  if (report_.stop == StopReason::interrupted) write_checkpoint();
}

void Trainer::load_checkpoint() {
  auto file = open_checkpoint(options_.checkpoint, identity_);
  if (!file) return;
  const Index p = box_.lower().size();
  log_ = evaluations_of(*file, p, options_.checkpoint);
  history_ = file->arrays["history"];
  if (history_.size() > 0 && history_.rows() != 2 * p)
    throw ModelFileError(fmt::format("checkpoint '{}' is damaged", options_.checkpoint));
  warm_.a = file->arrays["warm"];
  warm_.beta = file->arrays["warm_beta"];
  warm_theta_ = file->arrays["warm_theta"];
  warm_climb_ = file->header.value("warm_climb", 0);
  state_.mode = file->arrays["mode"];
  state_.latent = file->arrays["latent"];
  state_.solutions = file->arrays["solutions"];
  state_.estimates = static_cast<int>(history_.cols());
}

void Trainer::write_checkpoint() {
  if (options_.checkpoint.empty()) return;
  auto file = make_checkpoint(identity_, log_, box_.lower().size());
  file.header["warm_climb"] = warm_climb_;
  file.arrays["warm"] = warm_.a;
  file.arrays["warm_beta"] = warm_.beta;
  file.arrays["warm_theta"] = warm_theta_;
  file.arrays["history"] = history_;
  file.arrays["mode"] = state_.mode;
  file.arrays["latent"] = state_.latent;
  file.arrays["solutions"] = state_.solutions;
  write_array_file(options_.checkpoint, file);
  since_checkpoint_ = Timer();
}

LaplaceTraining Trainer::run() {
  // The paper's methods begin at the start values.
  const bool begin_exactly = plan_.train_method == "exact" || plan_.start_rows > 0;
  Vector theta = box_.inside(problem_.log_parameters());
  if (begin_exactly)
    theta = learn_exactly();
  else
    tell(theta);
  problem_.set_log_parameters(theta);
  if (plan_.train_method != "exact") learn_by_solves(theta);
  const auto names = problem_.parameter_names();
  const Vector found = problem_.log_parameters();
  for (Index i = 0; i < found.size(); ++i)
    if (box_.hit(i, found(i)) != 0)
      report_.bounds_hit.push_back(names[static_cast<std::size_t>(i)]);
  if (!options_.checkpoint.empty()) write_checkpoint();
  report_.resumed_evaluations = static_cast<int>(log_.num_replayed()) + report_.resumed_gradients;
  report_.seconds = timer_.seconds() - outside_;
  return {{std::move(problem_), std::move(report_), {}}, std::move(mode_)};
}

}  // namespace

LaplaceTraining train_laplace(const inference::Problem& start, const inference::Observations& data,
                              const Plan& plan, const LearnRequest& request) {
  return Trainer(start, data, plan, request).run();
}

}  // namespace mercer::models
