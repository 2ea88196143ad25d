#include "mercer/models/full_training.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <type_traits>

#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/optim/lbfgs.hpp"

namespace mercer::models {
namespace {

constexpr int kMostCorrections = 10;
// A gain in log likelihood below which the posterior of theta does not care.
constexpr double kNoGain = 0.1;
// Solves are carried further once so little is left to gain.
constexpr double kNearGain = 5.0;
constexpr double kLooseTolerance = 1e-2, kTightTolerance = 1e-3;
// Neighbours are found anew after a move of this size in any log parameter.
constexpr double kFarFromNeighbours = 0.5;
constexpr double kFirstTrust = 1.0, kLeastTrust = 0.05;
constexpr int kInnerSteps = 20;
// Log likelihood that a climb on the surrogate may leave: while neighbours are those of the start
// values, and after.
constexpr double kCoarseGain = 1, kFineGain = 0.02;
// Passes that measure the noise of a gradient.
constexpr int kErrorPasses = 2;
// Adam and AdaGrad measure it now and then only.
constexpr int kMeasureEvery = 10;

class Learner {
 public:
  Learner(const inference::Problem& start, const inference::Observations& data,
          const optim::Box& box, const FullTrainingOptions& options, const FullState& state,
          const FullTrainingHooks& hooks)
      : problem_(start),
        data_(data),
        box_(box),
        options_(options),
        hooks_(hooks),
        basis_(start.basis(data.x)),
        estimator_(data, options.estimator),
        out_{.problem = start} {
    load(state);
  }

  FullTrainingOutcome run();

 private:
  void run_corrections();
  void climb_first();
  bool correct(int most);
  Vector free_part(const Vector& g) const;
  void run_descent();
  void find_neighbours();
  approximations::VecchiaEvidence surrogate(ConstVectorView theta);
  /// Maximises surrogate(theta) + c'(theta - middle) over the box; returns the best theta.
  /// It ends when five steps together gain less than `gain`.
  Vector climb_surrogate(const Vector& middle, const Vector& c, const optim::Box& box, int steps,
                         double gain);
  inference::GradientEstimate exact_gradient(const Vector& theta, double tolerance,
                                             int error_passes);
  void tell();
  void finish_step();
  void record(TrainStep step, const inference::GradientEstimate& estimate);
  bool stopped(const std::string& stage, double fraction, const std::string& detail);
  template <class Numbers, class Arrays>
  void visit_state(inference::EvidenceGradient::State& e, Numbers&& number, Arrays&& array);
  FullState saved();
  void load(const FullState& state);

  inference::Problem problem_;
  const inference::Observations& data_;
  const optim::Box& box_;
  const FullTrainingOptions& options_;
  const FullTrainingHooks& hooks_;
  Matrix basis_;
  inference::EvidenceGradient estimator_;
  std::unique_ptr<approximations::VecchiaLikelihood> vecchia_;
  Timer timer_;
  double outside_ = 0;  // seconds of the hooks, which are not learning
  // What a checkpoint holds: see visit_state.
  int step_ = 0;
  Vector theta_;
  Vector neighbours_at_;  // empty: the surrogate was not maximised yet
  Vector last_move_;
  double trust_ = kFirstTrust;
  double gain_ = HUGE_VAL;
  bool done_ = false;
  StopReason climbed_ = StopReason::converged;  // the last climb on the surrogate
  optim::StochasticState descent_;

  FullTrainingOutcome out_;
};

// Everything that the next step depends on, listed once for saving and loading.
template <class Numbers, class Arrays>
void Learner::visit_state(inference::EvidenceGradient::State& e, Numbers&& number, Arrays&& array) {
  number(step_);
  number(trust_);
  number(gain_);
  number(done_);
  number(out_.loose_gradients);
  number(descent_.step);
  number(descent_.converged);
  number(e.stale);
  number(e.estimates);
  number(e.level);
  number(e.iterations_when_new);
  array("theta", theta_);
  array("neighbours_at", neighbours_at_);
  array("last_move", last_move_);
  array("standard_error", out_.standard_error);
  array("first", descent_.first);
  array("second", descent_.second);
  array("gradients", descent_.gradients);
  array("thetas", descent_.thetas);
  array("built_at", e.built_at);
  array("solutions", e.solutions);
}

void Learner::load(const FullState& state) {
  theta_ = box_.inside(problem_.log_parameters());
  descent_.theta = theta_;
  if (state.empty()) return;
  const Index p = theta_.size();
  const auto stored = [&](const std::string& name) -> const Matrix& {
    const auto found = state.find(name);
    if (found == state.end())
      throw ModelFileError(fmt::format("the checkpoint is damaged: it has no '{}'", name));
    return found->second;
  };
  const Matrix& numbers = stored("numbers");
  Index at = 0;
  inference::EvidenceGradient::State e;
  visit_state(
      e,
      [&]<class T>(T& value) {
        if (at >= numbers.size())
          throw ModelFileError("the checkpoint is damaged: it is too short");
        value = static_cast<T>(numbers(at++));
      },
      [&]<class T>(const char* name, T& value) {
        const Matrix& array = stored(name);
        if constexpr (std::is_same_v<T, std::vector<Vector>>)
          for (const auto& column : array.colwise()) value.push_back(column);
        else
          value = array;
      });
  if (theta_.size() != p)
    throw ModelFileError("the checkpoint is damaged: it is of another number of parameters");
  descent_.theta = theta_;
  out_.resumed_steps = step_;
  estimator_.resume(std::move(e), problem_);
}

FullState Learner::saved() {
  FullState out;
  std::vector<double> numbers;
  auto e = estimator_.state();
  visit_state(
      e, [&](const auto& value) { numbers.push_back(static_cast<double>(value)); },
      [&]<class T>(const char* name, const T& value) {
        auto& array = out[name];
        if constexpr (std::is_same_v<T, std::vector<Vector>>) {
          array.resize(theta_.size(), static_cast<Index>(value.size()));
          for (std::size_t i = 0; i < value.size(); ++i)
            array.col(static_cast<Index>(i)) = value[i];
        } else {
          array = value;
        }
      });
  out["numbers"] = Eigen::Map<const Vector>(numbers.data(), static_cast<Index>(numbers.size()));
  return out;
}

bool Learner::stopped(const std::string& stage, double fraction, const std::string& detail) {
  return hooks_.progress && hooks_.progress({stage, fraction, detail, true}) == Action::stop;
}

void Learner::tell() {
  const Timer outside;
  if (hooks_.on_values) hooks_.on_values(theta_);
  outside_ += outside.seconds();
}

void Learner::finish_step() {
  tell();
  const Timer outside;
  if (hooks_.after_step) hooks_.after_step(saved());
  outside_ += outside.seconds();
}

void Learner::find_neighbours() {
  problem_.set_log_parameters(neighbours_at_);
  const Index wanted = options_.neighbours.value_or(surrogate_neighbours(data_.size()));
  vecchia_ = std::make_unique<approximations::VecchiaLikelihood>(
      problem_.kernel, data_.noise.at(problem_.noise()), data_.x,
      approximations::VecchiaOptions{.neighbours = wanted, .seed = options_.seed});
}

approximations::VecchiaEvidence Learner::surrogate(ConstVectorView theta) {
  problem_.set_log_parameters(theta);
  const Index n = data_.size();
  const Vector noise = data_.noise.at(problem_.noise()).vector(n);
  const Vector slope = data_.noise.slope(problem_.noise()).vector(n);
  ++out_.surrogate_evaluations;
  auto out = vecchia_->evaluate({problem_.kernel, noise, slope, data_.target(), basis_});
  out_.raised_conditionals = std::max(out_.raised_conditionals, out.raised);
  // What merging took away is known exactly; of the information, its mean.
  out.value += data_.replicates.log_likelihood(problem_.noise());
  out.gradient(out.gradient.size() - 1) += data_.replicates.slope(problem_.noise());
  out.information(out.gradient.size() - 1, out.gradient.size() - 1) +=
      0.5 * static_cast<double>(data_.replicates.merged_rows());
  return out;
}

Vector Learner::climb_surrogate(const Vector& middle, const Vector& c, const optim::Box& box,
                                int steps, double gain) {
  const auto rows = static_cast<double>(data_.rows_before_merging());
  const optim::Objective f = [&](ConstVectorView theta, VectorView gradient) {
    const auto v = surrogate(theta);
    gradient = -(v.gradient + c) / rows;
    return -(v.value + c.dot(theta - middle)) / rows;
  };
  optim::LbfgsOptions options;
  options.max_iterations = steps;
  options.value_tolerance = gain / rows;
  const auto result = optim::lbfgs(f, middle, box, options, [&](const Iteration& it) {
    return stopped("learn (surrogate)", -1,
                   fmt::format("step {}, log likelihood about {:.6g}", it.number, -it.value * rows))
               ? Action::stop
               : Action::proceed;
  });
  if (result.stop == StopReason::interrupted) out_.stop = StopReason::interrupted;
  climbed_ = result.stop;
  return result.theta;
}

inference::GradientEstimate Learner::exact_gradient(const Vector& theta, double tolerance,
                                                    int error_passes) {
  problem_.set_log_parameters(theta);
  bool stop = false;
  auto estimate = estimator_.estimate(problem_, tolerance, error_passes, [&](const Iteration& it) {
    stop = stopped("learn (all rows)", -1,
                   fmt::format("step {}, iteration {} of its solves", step_ + 1, it.number));
    return stop ? Action::stop : Action::proceed;
  });
  if (stop)
    out_.stop = StopReason::interrupted;
  else if (estimate.stop != StopReason::converged)
    ++out_.loose_gradients;
  out_.matvecs += estimate.matvecs;
  return estimate;
}

void Learner::record(TrainStep step, const inference::GradientEstimate& estimate) {
  step.number = ++step_;
  step.seconds = timer_.seconds() - outside_;
  step.gradient_norm = estimate.gradient.norm();
  step.stop = estimate.stop;
  step.relative_residual = estimate.relative_residual;
  step.iterations = estimate.iterations;
  step.matvecs = estimate.matvecs;
  out_.gradient = estimate.gradient;
  if (estimate.standard_error.size() > 0) out_.standard_error = estimate.standard_error;
  out_.steps.push_back(std::move(step));
}

// At a bound, a gradient that points out of the box is nothing to be gained.
Vector Learner::free_part(const Vector& g) const {
  Vector out = g;
  for (Index i = 0; i < g.size(); ++i)
    if (box_.blocks(i, theta_(i), g(i))) out(i) = 0;
  return out;
}

void Learner::climb_first() {
  const Vector none = Vector::Zero(theta_.size());
  neighbours_at_ = theta_;
  find_neighbours();
  theta_ = climb_surrogate(theta_, none, box_, options_.surrogate_steps, kCoarseGain);
  if (out_.stop == StopReason::interrupted) return;
  // Once more with the neighbours of the new values: lengthscales say who is near.
  neighbours_at_ = theta_;
  find_neighbours();
  theta_ = climb_surrogate(theta_, none, box_, options_.surrogate_steps, kFineGain);
  tell();
}

// One exact gradient at theta_ and the step that follows from it. False when the run is to end.
bool Learner::correct(int most) {
  const double tolerance = gain_ < kNearGain ? kTightTolerance : kLooseTolerance;
  const auto exact = exact_gradient(theta_, tolerance, kErrorPasses);
  if (out_.stop == StopReason::interrupted) return false;
  if (!exact.gradient.allFinite()) {
    out_.stop = StopReason::breakdown;
    return false;
  }
  const auto v = surrogate(theta_);
  const Index p = theta_.size();
  const Eigen::LLT<Matrix> information(v.information + Matrix::Identity(p, p));
  const auto gain_of = [&](const Vector& g) { return 0.5 * g.dot(information.solve(g)); };
  gain_ = gain_of(free_part(exact.gradient));
  double noise = 0;
  for (const auto& contrast : exact.contrasts.colwise())
    noise += gain_of(contrast) / static_cast<double>(exact.contrasts.cols());
  TrainStep step;
  step.predicted_gain = gain_;
  step.noise_gain = noise;
  step.tolerance = tolerance;
  record(std::move(step), exact);

  const double enough = std::max(kNoGain, noise);
  // The gradient turned round along the last move: that went too far.
  if (last_move_.size() > 0 && exact.gradient.dot(last_move_) < 0 && gain_ > enough)
    trust_ = std::max(kLeastTrust, 0.5 * trust_);
  done_ = gain_ <= enough && tolerance <= kTightTolerance;
  if (gain_ <= enough) {
    if (!done_) gain_ = 0;  // the same again, with tight solves
  } else {
    const Vector c = exact.gradient - v.gradient;
    const optim::Box near((theta_.array() - trust_).max(box_.lower().array()).matrix(),
                          (theta_.array() + trust_).min(box_.upper().array()).matrix());
    const Vector next = climb_surrogate(theta_, c, near, kInnerSteps, kFineGain);
    last_move_ = next - theta_;
    theta_ = next;
    // Part of a climb is good enough for a model, but not to go on from.
    if (out_.stop == StopReason::interrupted) return false;
    if ((theta_ - neighbours_at_).lpNorm<Eigen::Infinity>() > kFarFromNeighbours) {
      neighbours_at_ = theta_;
      find_neighbours();
    }
  }
  finish_step();
  if (!done_ && stopped("learn (all rows)", std::min(0.95, static_cast<double>(step_) / most),
                        fmt::format("correction {}, {:.3g} still to be gained", step_, gain_)))
    out_.stop = StopReason::interrupted;
  return !done_ && out_.stop != StopReason::interrupted;
}

void Learner::run_corrections() {
  if (neighbours_at_.size() == 0)
    climb_first();
  else
    find_neighbours();
  if (options_.method == "vecchia" || out_.stop == StopReason::interrupted) {
    if (out_.stop != StopReason::interrupted) out_.stop = climbed_;
    return;
  }
  const int most = std::min(options_.steps, kMostCorrections);
  while (!done_ && step_ < most && correct(most)) {
  }
  if (done_ && out_.stop != StopReason::interrupted)
    out_.stop = out_.loose_gradients > 0 ? StopReason::stagnation : StopReason::converged;
}

void Learner::run_descent() {
  const auto rows = static_cast<double>(data_.rows_before_merging());
  optim::StochasticOptions options;
  options.steps = options_.steps;
  if (options_.method == "adagrad") {
    options.rule = optim::StepRule::adagrad;
    options.rate = 1.0;
  }
  const optim::NoisyObjective f = [&](ConstVectorView theta, int step) {
    const double tolerance =
        step + options.window < options.steps ? kLooseTolerance : kTightTolerance;
    const int passes = step % kMeasureEvery == 0 ? kErrorPasses : 0;
    const auto estimate = exact_gradient(theta, tolerance, passes);
    if (out_.stop == StopReason::interrupted) return optim::NoisyGradient{};
    TrainStep row;
    row.tolerance = tolerance;
    record(std::move(row), estimate);
    optim::NoisyGradient g{-estimate.gradient / rows, {}};
    if (out_.standard_error.size() > 0) g.standard_error = out_.standard_error / rows;
    return g;
  };
  const auto after = [&](const optim::StochasticState& state) {
    descent_ = state;
    theta_ = state.theta;
    finish_step();
    const bool stop = stopped("learn (all rows)", static_cast<double>(state.step) / options.steps,
                              fmt::format("step {}, gradient {:.3g}", state.step,
                                          out_.steps.back().gradient_norm)) ||
                      out_.stop == StopReason::interrupted;
    return stop ? Action::stop : Action::proceed;
  };
  const auto result = optim::descend(f, descent_, box_, options, after);
  theta_ = result.theta;
  out_.stop = result.stop;
  if (out_.stop == StopReason::converged && out_.loose_gradients > 0)
    out_.stop = StopReason::stagnation;
}

FullTrainingOutcome Learner::run() {
  if (is_descent(options_.method))
    run_descent();
  else
    run_corrections();
  problem_.set_log_parameters(theta_);
  out_.problem = problem_;
  return std::move(out_);
}

}  // namespace

double surrogate_likelihood(const inference::Problem& problem, const inference::Observations& data,
                            std::uint64_t seed) {
  const Index n = data.size();
  const linalg::Diagonal noise = data.noise.at(problem.noise());
  const approximations::VecchiaLikelihood vecchia(
      problem.kernel, noise, data.x, {.neighbours = surrogate_neighbours(n), .seed = seed});
  const Vector slope = data.noise.slope(problem.noise()).vector(n);
  const auto evidence = vecchia.evaluate(
      {problem.kernel, noise.vector(n), slope, data.target(), problem.basis(data.x)}, false);
  return evidence.value + data.replicates.log_likelihood(problem.noise());
}

bool is_descent(const std::string& method) { return method == "adam" || method == "adagrad"; }

Index surrogate_neighbours(Index n) { return std::min<Index>(n < 20000 ? 31 : 63, n - 1); }

FullTrainingOutcome learn_by_solves(const inference::Problem& start,
                                    const inference::Observations& data, const optim::Box& box,
                                    const FullTrainingOptions& options, const FullState& state,
                                    const FullTrainingHooks& hooks) {
  return Learner(start, data, box, options, state, hooks).run();
}

}  // namespace mercer::models
