#include "mercer/models/training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/checkpoint.hpp"
#include "mercer/models/full_training.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/optim/replay.hpp"

namespace mercer::models {
namespace {

// Bounds of log parameters: six to ten decades either side of standardised data.
constexpr double kLogBound = 11.512925464970229;  // 1e-5 .. 1e5
constexpr double kLeastNoise = 1e-6;              // of the variance of the target

// A checkpoint at most this often; replay makes any earlier one as good, only older.
constexpr double kCheckpointSeconds = 1.0;
// Several starts are compared on this many rows, each after so many steps there.
constexpr Index kTrialRows = 3000;
constexpr int kTrialSteps = 25;
// Arrays of a checkpoint that belong to learning by solves.
constexpr std::string_view kFullPrefix = "full_";

class Trainer {
 public:
  Trainer(inference::Problem problem, const inference::Observations& data, const Plan& plan,
          const LearnRequest& request)
      : problem_(std::move(problem)),
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

  Learned run();

 private:
  LikelihoodValue learn_exactly();
  double try_on_more_rows(Vector& theta);
  struct Stage {
    std::string name;
    inference::Observations data;
  };

  void set_bounds();
  void load_checkpoint();
  void write_checkpoint();
  [[noreturn]] void keep_and_stop();
  Stage make_stage(const std::string& name, Index rows) const;
  optim::MinimizeResult climb(const Stage& stage, const Vector& start, double share_from,
                              double share_to);
  void learn_on_all(const Vector& start);
  void tell(const Vector& theta);
  Vector random_start(int index) const;
  void add(const optim::MinimizeResult& result);

  inference::Problem problem_;
  const inference::Observations& data_;
  const Plan& plan_;
  const TrainOptions& options_;
  std::uint64_t seed_, identity_;
  const ProgressCallback& progress_;
  const StepObserver& on_step_;
  Timer timer_;
  double outside_ = 0;  // seconds of on_step_, which are not learning
  int told_ = 0;
  std::vector<Index> order_;
  optim::ReplayLog log_;
  FullState full_state_;  // of learning by solves; empty before its first gradient
  Timer since_checkpoint_;
  bool unsaved_ = false;
  optim::Box box_;
  TrainReport report_;
};

void Trainer::set_bounds() {
  // Relative to the start values, so that they make sense on unscaled data too: a standardised
  // start is of order one.
  const Vector start = problem_.log_parameters();
  const auto lengths = problem_.kernel.is_lengthscale();
  const Index p = start.size();
  Vector lower = start.array() - kLogBound;
  Vector upper = start.array() + kLogBound;
  for (Index i = 0; i + 1 < p; ++i) {
    // Shapes (alpha, period, offset) wander less far before they stop to matter.
    const auto index = static_cast<std::size_t>(i);
    if (!lengths[index] && !problem_.kernel.is_variance()[index]) {
      lower(i) = start(i) - 0.5 * kLogBound;
      upper(i) = start(i) + 0.5 * kLogBound;
    }
  }
  const ConstVectorView y = data_.target();
  const double target_variance = std::max((y.array() - y.mean()).square().mean(), 1e-300);
  lower(p - 1) = std::min(std::log(kLeastNoise * target_variance), start(p - 1) - 1);
  problem_.kernel.narrow_to_limits(lower, upper);
  box_ = optim::Box(std::move(lower), std::move(upper));
}

void Trainer::load_checkpoint() {
  const auto file = open_checkpoint(options_.checkpoint, identity_);
  if (!file) return;
  log_ = evaluations_of(*file, box_.lower().size(), options_.checkpoint);
  for (const auto& [name, values] : file->arrays)
    if (name.starts_with(kFullPrefix)) full_state_[name.substr(kFullPrefix.size())] = values;
}

void Trainer::write_checkpoint() {
  if (options_.checkpoint.empty()) return;
  auto file = make_checkpoint(identity_, log_, box_.lower().size());
  for (const auto& [name, values] : full_state_)
    file.arrays[std::string(kFullPrefix) + name] = values;
  write_array_file(options_.checkpoint, file);
  since_checkpoint_ = Timer();
  unsaved_ = false;
}

Trainer::Stage Trainer::make_stage(const std::string& name, Index rows) const {
  if (rows >= data_.size()) return {name, data_};
  return {name, data_.rows(std::span(order_).first(static_cast<std::size_t>(rows)))};
}

Vector Trainer::random_start(int index) const {
  Rng rng(seed_, "restart", static_cast<std::uint64_t>(index));
  Vector theta = problem_.log_parameters();
  const auto lengths = problem_.kernel.is_lengthscale();
  // One common factor for all lengthscales and a smaller one for each: starts differ in scale.
  const double common = 0.7 * rng.normal();
  for (Index i = 0; i + 1 < theta.size(); ++i)
    theta(i) +=
        lengths[static_cast<std::size_t>(i)] ? common + 0.4 * rng.normal() : 0.5 * rng.normal();
  theta(theta.size() - 1) += 1.5 * rng.normal() - 1.0;
  return box_.inside(theta);
}

optim::MinimizeResult Trainer::climb(const Stage& stage, const Vector& start, double share_from,
                                     double share_to) {
  const auto rows = static_cast<double>(stage.data.rows_before_merging());
  auto problem = problem_;
  // On fewer rows more inputs may depend on each other; the likelihood knows only what they span.
  if (stage.data.size() < data_.size())
    problem.trend_left_out = inference::dependent_inputs(problem.mean, stage.data.x);
  // The objective is the negative log likelihood per row, so that tolerances fit all sizes.
  Vector best = start;
  double best_value = HUGE_VAL;
  const optim::Objective live = [&](ConstVectorView theta, VectorView gradient) {
    problem.set_log_parameters(theta);
    const auto evidence = inference::exact_evidence(problem, stage.data, true);
    gradient = -evidence.gradient / rows;
    return -evidence.value / rows;
  };
  const optim::Objective logged = log_.record(live, [&](const optim::ReplayLog&) {
    unsaved_ = true;
    if (since_checkpoint_.seconds() > kCheckpointSeconds) write_checkpoint();
  });
  optim::LbfgsOptions options;
  options.max_iterations = options_.steps_or_default();
  const optim::Objective watched = [&](ConstVectorView theta, VectorView gradient) {
    const double value = logged(theta, gradient);
    if (value < best_value) {
      best_value = value;
      best = theta;
    }
    return value;
  };
  const Observer observer = [&](const Iteration& it) {
    // Of starts on few rows, only what comes of them is worth scoring.
    if (stage.data.size() == data_.size()) tell(best);
    if (!progress_) return Action::proceed;
    const double done = static_cast<double>(it.number) / options_.steps_or_default();
    return progress_({stage.name, share_from + (share_to - share_from) * done,
                      fmt::format("step {}, log likelihood {:.6g}", it.number, -it.value * rows)});
  };
  optim::MinimizeResult result;
  try {
    result = optim::lbfgs(watched, start, box_, options, observer);
  } catch (const Interrupted&) {  // in the middle of a factorisation
    result.stop = StopReason::interrupted;
  }
  add(result);
  if (result.stop == StopReason::interrupted) keep_and_stop();
  return result;
}

void Trainer::keep_and_stop() {
  if (unsaved_) write_checkpoint();
  throw Interrupted(interrupted_text(options_.checkpoint, log_.evaluations().size()));
}

void Trainer::add(const optim::MinimizeResult& result) {
  report_.steps += result.iterations;
  report_.evaluations += result.evaluations;
  report_.failed_evaluations += result.rejected_evaluations;
}

void Trainer::tell(const Vector& theta) {
  ++told_;
  if (!on_step_) return;
  auto problem = problem_;
  problem.set_log_parameters(theta);
  const Timer outside;
  on_step_(problem, told_, timer_.seconds() - outside_);
  outside_ += outside.seconds();
}

// The rest of the way by solves, from what was found on a subset.
void Trainer::learn_on_all(const Vector& start) {
  const Stage all = make_stage("learn", plan_.train_rows);
  FullTrainingOptions options;
  options.method = plan_.train_method;
  options.steps = options_.steps_or_default();
  options.seed = seed_;
  auto& estimator = options.estimator;
  estimator.probes = options_.probes;
  if (options_.probe_kind != "auto") estimator.kind = inference::probe_kind(options_.probe_kind);
  estimator.system = plan_.train_system;
  estimator.seed = seed_;
  FullTrainingHooks hooks;
  hooks.progress = progress_;
  hooks.on_values = [&](const Vector& theta) { tell(theta); };
  hooks.after_step = [&](const FullState& state) {
    full_state_ = state;
    unsaved_ = true;
    if (since_checkpoint_.seconds() > kCheckpointSeconds) write_checkpoint();
  };
  problem_.set_log_parameters(start);
  const auto left_out = problem_.trend_left_out;
  if (all.data.size() < data_.size())
    problem_.trend_left_out = inference::dependent_inputs(problem_.mean, all.data.x);
  auto learned = learn_by_solves(problem_, all.data, box_, options, full_state_, hooks);
  problem_ = std::move(learned.problem);
  problem_.trend_left_out = left_out;
  report_.loose_gradients = learned.loose_gradients;
  report_.raised_conditionals = learned.raised_conditionals;
  report_.steps += static_cast<int>(learned.steps.size());
  report_.history = std::move(learned.steps);
  report_.resumed_gradients = learned.resumed_steps;
  report_.gradient = std::move(learned.gradient);
  report_.standard_error = std::move(learned.standard_error);
  report_.surrogate_evaluations += learned.surrogate_evaluations;
  report_.matvecs = learned.matvecs;
  report_.stop = learned.stop;
}

// What is best for few rows need not be for all: a start goes on for some steps on the Vecchia
// likelihood of more rows, and is judged by what it reaches there. Returns its negative log.
double Trainer::try_on_more_rows(Vector& theta) {
  const Stage more = make_stage("learn (start)", std::min(plan_.train_rows, kTrialRows));
  auto problem = problem_;
  problem.set_log_parameters(theta);
  if (more.data.size() < data_.size())
    problem.trend_left_out = inference::dependent_inputs(problem.mean, more.data.x);
  FullTrainingOptions options;
  options.method = "vecchia";
  options.surrogate_steps = kTrialSteps;
  options.estimator.system = plan_.train_system;
  options.seed = seed_;
  FullTrainingHooks hooks;
  hooks.progress = progress_;
  const auto tried = learn_by_solves(problem, more.data, box_, options, {}, hooks);
  if (tried.stop == StopReason::interrupted) keep_and_stop();
  report_.surrogate_evaluations += tried.surrogate_evaluations;
  theta = tried.problem.log_parameters();
  return -surrogate_likelihood(tried.problem, more.data, seed_);
}

// By Cholesky: several starts on few rows, the best of them on all that are learned from.
LikelihoodValue Trainer::learn_exactly() {
  const bool by_solves = plan_.train_method != "exact";
  const bool staged = plan_.start_rows > 0;
  const Stage first =
      make_stage(staged ? "learn (start)" : "learn", staged ? plan_.start_rows : plan_.train_rows);
  const double first_share = staged ? 0.3 : 1.0;
  optim::MinimizeResult best;
  double best_rank = HUGE_VAL;
  const int starts = 1 + options_.restarts;
  for (int s = 0; s < starts; ++s) {
    const Vector start = s == 0 ? problem_.log_parameters() : random_start(s);
    auto result = climb(first, start, first_share * s / starts, first_share * (s + 1) / starts);
    double rank = result.value;
    if (by_solves && starts > 1 && full_state_.empty() && std::isfinite(rank))
      rank = try_on_more_rows(result.theta);
    if (s > 0 && !(rank < best_rank)) continue;
    best_rank = rank;
    best = std::move(result);
  }
  report_.restarts = options_.restarts;
  Index rows = first.data.rows_before_merging();
  if (staged && !by_solves) {
    const Stage all = make_stage("learn", plan_.train_rows);
    rows = all.data.rows_before_merging();
    best = climb(all, best.theta, first_share, 1.0);
  }
  if (!std::isfinite(best.value))
    throw Error(
        "learning failed: the likelihood could not be evaluated at any start value; fix the "
        "hyperparameters (--noise, --lengthscale) or scale the data");
  problem_.set_log_parameters(best.theta);
  if (rows < data_.rows_before_merging()) tell(best.theta);
  report_.stop = best.stop;
  LikelihoodValue likelihood;
  likelihood.known = true;
  likelihood.value = -best.value * static_cast<double>(rows);
  likelihood.low = likelihood.high = likelihood.value;
  likelihood.method = rows == data_.rows_before_merging() ? "cholesky" : "cholesky-subset";
  likelihood.rows = rows;
  likelihood.gradient = -best.gradient * static_cast<double>(rows);
  return likelihood;
}

Learned Trainer::run() {
  const bool by_solves = plan_.train_method != "exact";
  LikelihoodValue likelihood;
  if (!by_solves || plan_.start_rows > 0) likelihood = learn_exactly();
  if (by_solves) {
    learn_on_all(problem_.log_parameters());
    likelihood = {.method = "none"};  // not of these values any more
  }
  if (unsaved_) write_checkpoint();
  const auto names = problem_.parameter_names();
  const Vector theta = problem_.log_parameters();
  for (Index i = 0; i < theta.size(); ++i)
    if (box_.hit(i, theta(i)) != 0)
      report_.bounds_hit.push_back(names[static_cast<std::size_t>(i)]);
  report_.resumed_evaluations = static_cast<int>(log_.num_replayed());
  report_.seconds = timer_.seconds() - outside_;
  return {problem_, report_, likelihood};
}

}  // namespace

Learned train(const inference::Problem& start, const inference::Observations& data,
              const Plan& plan, const LearnRequest& request) {
  return Trainer(start, data, plan, request).run();
}

}  // namespace mercer::models
