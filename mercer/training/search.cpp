#include "mercer/training/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/training/checkpoint.hpp"
#include "mercer/training/secant_hessian.hpp"

namespace mercer::training {
namespace {

using inference::Inference;
using inference::Observations;
using inference::Problem;

// Seconds between two checkpoints, and in multiples of what the last one took to write, so that
// they cost little; replay makes any earlier one as good, only older.
constexpr double kCheckpointSeconds = 0.1, kCheckpointShare = 50;
constexpr int kExactSteps = 100;
constexpr double kUsualSteps = 25;
// No logarithm of a hyperparameter moves further in the first trial of a step.
constexpr double kLongestTrial = 2;
// Of a Hessian that a climb begins with: as if each logarithm had a prior of standard deviation 1.
constexpr double kLeastCurvature = 1;
// Step of the differences that a Hessian is taken from.
constexpr double kDifference = 0.05;
// Arrays of a checkpoint that belong to the exact method, to the trainer, to the base points and to
// passes over all rows.
constexpr std::string_view kExactPrefix = "exact_", kTrainerPrefix = "trainer_",
                           kBasePrefix = "base_", kFullPrefix = "full_";

void add_arrays(const inference::State& state, std::string_view prefix, data::ArrayFile& file) {
  for (const auto& [name, values] : state) file.arrays[std::string(prefix) + name] = values;
}

inference::State arrays_of(const data::ArrayFile& file, std::string_view prefix) {
  inference::State out;
  for (const auto& [name, values] : file.arrays)
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = values;
  return out;
}

}  // namespace

Index level_blocks(Index blocks, Index rows, Index all) {
  if (rows >= all) return std::min(blocks, rows);
  const double share = static_cast<double>(rows) / static_cast<double>(all);
  return std::clamp<Index>(std::llround(share * static_cast<double>(blocks)), 1, rows);
}

Search::Search(const Problem& start, const Observations& rows, const TrainingChoice& choice,
               const LearnRequest& request)
    : start_(start),
      all_(rows),
      choice_(choice),
      request_(request),
      rules_(rules_for(start)),
      exact_method_(inference::evidence_method(start, inference::EvidenceBy::factorisation)),
      order_(Rng(request.seed, "subset").permutation(rows.size())),
      box_(bounds(start, rows)) {
  load_checkpoint();
}

const SampleOptions& Search::sampling() const {
  static const SampleOptions defaults;
  return request_.sampling != nullptr ? *request_.sampling : defaults;
}

Observations Search::rows(Index count) const {
  if (count >= all_.size()) return all_;
  return all_.rows(std::span(order_).first(static_cast<std::size_t>(count)));
}

Problem Search::problem_on(const Observations& rows) const {
  auto problem = start_;
  if (rows.size() < all_.size())
    problem.trend_left_out = inference::dependent_inputs(problem.mean, rows.x);
  return problem;
}

double Search::entries(const Observations& rows) {
  return static_cast<double>(rows.rows_before_merging()) * static_cast<double>(rows.functions());
}

inference::InferenceSetup Search::setup(const Observations& rows) const {
  return {.rows = rows,
          .system = choice_.system,
          .probes = options().probes,
          .probe_kind = options().probe_kind == "auto"
                            ? inference::Probes::control
                            : inference::probe_kind(options().probe_kind),
          .seed = seed(),
          .sparse = choice_.sparse};
}

// Minus the log evidence per entry; answered from the checkpoint as far as that goes. What is
// returned uses `inference` and `problem`.
optim::Objective Search::objective(Inference& inference, Problem& problem, double entries) {
  ++climb_;
  // A resumed run begins its first evaluation where the interrupted one would have.
  if (exact_climb_ == climb_ && !exact_state_.empty()) inference.load(exact_state_, problem);
  const double share = 1 / entries;
  const optim::Objective live = [&, share](ConstVectorView theta, VectorView gradient) {
    problem.set_log_parameters(theta);
    inference::Evidence evidence;
    // What the next evaluation begins from; not that of one which was cancelled half way.
    const auto keep_state = [&] {
      exact_state_ = inference.save();
      exact_climb_ = climb_;
    };
    try {
      evidence = inference.evaluate(problem, {});
    } catch (const NotPositiveDefinite&) {
      keep_state();
      throw;
    }
    keep_state();
    gradient = -share * evidence.gradient;
    return -share * evidence.value;
  };
  return log_.record(live, [&](const optim::ReplayLog&) {
    unsaved_ = true;
    write_checkpoint_in_time();
  });
}

int Search::exact_steps() const { return options().steps.value_or(kExactSteps); }

optim::MinimizeResult Search::climb(const Observations& rows, const Vector& start,
                                    const std::string& stage, const Hint& hint) {
  auto problem = problem_on(rows);
  const auto exact = inference::make(exact_method_, problem, setup(rows));
  exact->start_from(hint.warm);
  auto result = climb(*exact, std::move(problem), rows, start, stage, hint);
  climbed_ = exact->warm_start();
  return result;
}

optim::MinimizeResult Search::climb(Inference& method, Problem problem, const Observations& rows,
                                    const Vector& start, const std::string& stage,
                                    const Hint& hint) {
  const double count = entries(rows);
  const auto f = objective(method, problem, count);
  Vector best = start, best_gradient = Vector::Zero(start.size());
  double best_value = HUGE_VAL;
  SecantHessian secant(hint.hessian);
  // The first evaluation is that of the start, unless that is at a bound: then it is moved inside.
  bool known = hint.gradient.size() > 0 && box_.inside(start) == start;
  const optim::Objective watched = [&](ConstVectorView theta, VectorView gradient) {
    const double value = known ? hint.value : f(theta, gradient);
    if (std::exchange(known, false)) {
      gradient = hint.gradient;
      --report.evaluations;
    }
    if (value < best_value) {
      if (best_value == HUGE_VAL) secant.add(theta, gradient);
      best_value = value;
      best = theta;
      best_gradient = gradient;
    }
    return value;
  };
  optim::LbfgsOptions options;
  options.max_iterations = std::max(1, exact_steps() - hint.steps_taken);
  options.value_tolerance = hint.slow_gain > 0 ? hint.slow_gain / count : rules_.value_tolerance;
  options.hessian = hint.hessian;
  options.longest_step = kLongestTrial;
  options.least_curvature = kLeastCurvature / count;
  if (hint.gain_left > 0 || hint.hessian.size() > 0)
    options.gain_tolerance = (hint.gain_left > 0 ? hint.gain_left : rules_.gain_left) / count;
  const Observer observer = [&](const Iteration& it) {
    remember_climb(best, best_value, rows.size());
    secant.add(best, best_gradient);
    // Of starts on few rows, only what comes of them is worth scoring.
    if (rows.size() == all_.size()) tell(best);
    // Climbs end long before their limit: this approaches 1 as their usual number is passed.
    const double usual = std::min<double>(kUsualSteps, options.max_iterations);
    return stopped(stage, 1 - std::exp(-it.number / usual),
                   fmt::format("step {}, log likelihood {:.6g}", it.number, -it.value * count))
               ? Action::stop
               : Action::proceed;
  };
  optim::MinimizeResult result;
  try {
    result = optim::lbfgs(watched, start, box_, options, observer);
  } catch (const Interrupted&) {  // in the middle of a factorisation
    result.stop = StopReason::interrupted;
  }
  climbed_hessian_ = secant.hessian();
  report.steps += result.iterations;
  report.evaluations += result.evaluations;
  report.failed_evaluations += result.rejected_evaluations;
  report.stop = result.stop;
  if (result.stop == StopReason::interrupted) interrupted();
  return result;
}

std::unique_ptr<Inference> Search::approximation(const Observations& rows, Problem problem,
                                                 ConstVectorView theta, const Matrix& base) {
  problem.set_log_parameters(theta);
  auto with = setup(rows);
  // Of a part of the rows there may be fewer than base points or blocks were asked for.
  if (with.sparse.rank) with.sparse.rank = std::min(*with.sparse.rank, rows.size());
  if (with.sparse.blocks)
    with.sparse.blocks = level_blocks(*with.sparse.blocks, rows.size(), choice_.rows);
  if (base.size() > 0) {
    with.sparse.points = base;
    with.sparse.rank = base.rows();
  }
  auto method = inference::make(choice_.approximation, problem, with);
  method->renew(problem);
  // Its evidence is not that of the climbs before, so the best of those says nothing about it.
  best_value_ = HUGE_VAL;
  best_rows_ = 0;
  return method;
}

void Search::finish_approximation(const Inference& approximation, const Observations& rows) {
  report.base_points = approximation.base_points().rows();
  if (rows.size() == all_.size()) approximation_state = approximation.save();
}

inference::LikelihoodValue Search::value_of(const optim::MinimizeResult& best,
                                            const Observations& rows) const {
  const double count = entries(rows);
  inference::LikelihoodValue out;
  out.known = true;
  out.value = out.low = out.high = -best.value * count;
  out.rows = rows.rows_before_merging();
  out.gradient = -best.gradient * count;
  return out;
}

optim::MinimizeResult Search::evaluate(const Observations& rows, const Vector& theta) {
  auto problem = problem_on(rows);
  const auto exact = inference::make(exact_method_, problem, setup(rows));
  const auto f = objective(*exact, problem, entries(rows));
  optim::MinimizeResult out;
  out.theta = theta;
  out.gradient = Vector::Zero(theta.size());
  ++report.evaluations;
  try {
    out.value = f(theta, out.gradient);
    if (std::isfinite(out.value) && out.gradient.allFinite()) return out;
  } catch (const NotPositiveDefinite&) {  // said by the value
  } catch (const Interrupted&) {
    interrupted();
  }
  ++report.failed_evaluations;
  out.value = HUGE_VAL;
  return out;
}

Matrix Search::hessian(const Observations& rows, const Vector& theta) {
  auto problem = problem_on(rows);
  const auto exact = inference::make(exact_method_, problem, setup(rows));
  return hessian(*exact, std::move(problem), rows, theta);
}

Matrix Search::hessian(Inference& method, Problem problem, const Observations& rows,
                       const Vector& theta, Vector here) {
  const Index p = theta.size();
  const auto f = objective(method, problem, entries(rows));
  Vector there = Vector::Zero(p);
  Matrix out(p, p);
  bool finite = true;
  try {
    if (here.size() == 0) {
      here = there;
      ++report.evaluations;
      finite = std::isfinite(f(theta, here));
    }
    for (Index i = 0; i < p && finite; ++i) {
      Vector moved = theta;
      const double step = theta(i) + kDifference > box_.upper()(i) ? -kDifference : kDifference;
      moved(i) += step;
      ++report.evaluations;
      finite = std::isfinite(f(moved, there));
      out.col(i) = (there - here) / step;
      if (stopped("learn (curvature)", static_cast<double>(i) / static_cast<double>(p), ""))
        throw Interrupted("interrupted at the curvature");
    }
  } catch (const Interrupted&) {
    interrupted();
  }
  return finite && out.allFinite() ? Matrix(0.5 * (out + out.transpose())) : Matrix();
}

inference::WarmStart Search::warm_start(const Observations& few, Index more, const Vector& theta) {
  auto problem = problem_on(few);
  problem.set_log_parameters(theta);
  try {
    const auto exact = inference::make(exact_method_, problem, setup(few));
    exact->evaluate(problem, {.gradient = false});
    return on_more_rows({.a = exact->warm_start().a}, more);
  } catch (const NotPositiveDefinite&) {
    return {};
  } catch (const Interrupted&) {
    interrupted();
  }
}

// Weights of the rows that are known and none of the others: K(X_more, X_few) a.
inference::WarmStart Search::on_more_rows(const inference::WarmStart& few, Index more) const {
  inference::WarmStart out;
  const Index known = few.a.rows();
  if (few.a.size() == 0 || known > more) return out;
  // All rows are as they come, fewer are the first of a random order.
  const bool in_order = more < all_.size() || known == all_.size();
  out.a = Matrix::Zero(more, few.a.cols());
  for (Index i = 0; i < known; ++i) out.a.row(in_order ? i : place(i)) = few.a.row(i);
  return out;
}

void Search::tell(ConstVectorView theta) {
  const int step = told_++;
  if (!request_.on_step) return;
  auto problem = start_;
  problem.set_log_parameters(theta);
  const Timer outside;
  request_.on_step({problem, step, seconds(), approximation_});
  outside_ += outside.seconds();
}

void Search::reached(ConstVectorView theta) {
  remember(theta);
  tell(theta);
}

// More rows say more; on as many, the better value counts: several starts follow each other.
void Search::remember_climb(ConstVectorView theta, double value, Index rows) {
  if (rows < best_rows_ || (rows == best_rows_ && !(value < best_value_))) return;
  best_rows_ = rows;
  best_value_ = value;
  remember(theta);
}

void Search::part(double begin, double end) {
  part_begin_ = begin;
  part_end_ = end;
}

bool Search::stopped(const std::string& stage, double fraction, const std::string& detail) {
  const bool learned = learned_.has_value();
  if (fraction >= 0)
    fraction_ = std::max(fraction_, part_begin_ + fraction * (part_end_ - part_begin_));
  return request_.progress && request_.progress({stage, fraction_, detail, /*ends_stage=*/learned,
                                                 learned}) == Action::stop;
}

std::string Search::stage(const Observations& rows) const {
  return rows.size() < choice_.rows ? "learn (fewer rows)" : "learn (all rows)";
}

void Search::keep(inference::State state) {
  trainer_state_ = std::move(state);
  unsaved_ = true;
  write_checkpoint_in_time();
}

void Search::keep_base(inference::State state) {
  base_state_ = std::move(state);
  unsaved_ = true;
  write_checkpoint_in_time();
}

void Search::keep_full(inference::State state) {
  full_state_ = std::move(state);
  try_to_write_checkpoint();
}

void Search::interrupted() {
  finish();
  throw Interrupted(
      interrupted_text(options().checkpoint, log_.evaluations().size(), checkpoint_error_));
}

void Search::finish() {
  if (unsaved_) try_to_write_checkpoint();
  report.resumed_evaluations = static_cast<int>(log_.num_replayed());
  report.seconds = seconds();
}

void Search::load_checkpoint() {
  const auto file = open_checkpoint(options().checkpoint, request_.identity);
  if (!file) return;
  log_ = evaluations_of(*file, box_.lower().size(), options().checkpoint);
  exact_climb_ = file->header.value("climb", 0);
  exact_state_ = arrays_of(*file, kExactPrefix);
  trainer_state_ = arrays_of(*file, kTrainerPrefix);
  base_state_ = arrays_of(*file, kBasePrefix);
  full_state_ = arrays_of(*file, kFullPrefix);
}

// A checkpoint that cannot be written now (a full disk) is no reason to lose the run: that is said
// once, and the next one is tried as usual.
void Search::try_to_write_checkpoint() {
  const Timer timer;
  try {
    write_checkpoint();
    checkpoint_error_.clear();
  } catch (const IoError& error) {
    if (checkpoint_error_.empty() && request_.progress)
      request_.progress(
          {.stage = "learn",
           .ends_stage = learned_.has_value(),
           .learned = learned_.has_value(),
           .warning = fmt::format("{}; the run goes on and tries again", error.what())});
    checkpoint_error_ = error.what();
  }
  since_checkpoint_ = Timer();
  checkpoint_pause_ = std::max(kCheckpointSeconds, kCheckpointShare * timer.seconds());
}

void Search::write_checkpoint_in_time() {
  if (since_checkpoint_.seconds() > checkpoint_pause_) try_to_write_checkpoint();
}

void Search::write_checkpoint() {
  if (options().checkpoint.empty()) return;
  auto file = make_checkpoint(request_.identity, log_, box_.lower().size());
  file.header["climb"] = exact_climb_;
  add_arrays(exact_state_, kExactPrefix, file);
  add_arrays(trainer_state_, kTrainerPrefix, file);
  add_arrays(base_state_, kBasePrefix, file);
  add_arrays(full_state_, kFullPrefix, file);
  write_array_file(options().checkpoint, file);
  unsaved_ = false;
}

}  // namespace mercer::training
