#include "mercer/training/approximate_climb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/training/base_points.hpp"
#include "mercer/training/levels.hpp"

namespace mercer::training {
namespace {

// Rows that an approximation learns from over those whose Hessian it begins with, at least.
constexpr Index kFewForHessian = 2;
// Log evidence that a climb may leave, where the model of its steps says what is left: this, or so
// much an entry of y, which is nothing beside an approximation's distance from the exact evidence.
constexpr double kApproximateGainLeft = 0.05, kGainLeftPerEntry = 1e-5;
// A climb is not at its end where its last step gained more log evidence than this, or where its
// gradient promises more.
constexpr double kGainToDoubt = 0.5;
// Log evidence per entry of y over that of noise alone, below which next to nothing is explained.
constexpr double kLittleExplained = 0.1;
// Of the time of learning by an approximation, about, before its base points move.
constexpr double kShareBeforeBase = 0.6;
// Rows of a level over those of the one before, and rows of a level at least: those, so many times
// the base points, and so many times the rows of the exact climbs.
constexpr Index kLevelRatio = 4, kLeastLevel = 4000, kRowsOfBase = 4, kRowsOfExact = 2;
// An evaluation on a level costs at most this share of one on the next.
constexpr double kWorthLevel = 0.5;
// Evaluations that a climb usually takes: on all rows without levels, on a level, on the last.
// Between 9 and 68 were seen on the last one: what is planned is no more than the right order.
constexpr double kUsualAlone = 40, kUsualOnLevel = 15, kUsualOnLast = 40;
// A Hessian by differences may cost as much as so many evaluations on all rows.
constexpr double kHessianEvaluations = 1.5;

bool hessian_by_differences(Index level, Index all, Index parameters) {
  return static_cast<double>(parameters) * static_cast<double>(level) <=
         kHessianEvaluations * static_cast<double>(all);
}

// What the last step of a climb has gained, per entry of y.
double last_gain(const optim::MinimizeResult& climb) {
  const Index steps = climb.history.rows();
  return steps > 1 ? climb.history(steps - 2, 0) - climb.history(steps - 1, 0) : 0;
}

double gain_to_leave(double entries) {
  return std::max(kApproximateGainLeft, kGainLeftPerEntry * entries);
}

class ApproximateClimb {
 public:
  ApproximateClimb(Search& search, const Vector& start, PartOfLearning part)
      : search_(search),
        levels_(search.choice()),
        part_(part),
        rows_(search.rows(search.choice().rows)),
        problem_(search.problem_on(rows_)),
        method_(search.approximation(rows_, problem_, start)),
        theta_(start),
        before_(search.report.evaluations) {}

  Climbed run();

 private:
  void begin_with_exact_hessian();
  optim::MinimizeResult climb_first();
  optim::MinimizeResult climb_level(std::size_t number);
  optim::MinimizeResult climb_all();
  struct Ground {
    inference::Inference& method;
    const inference::Problem& problem;
    const inference::Observations& rows;
  };
  optim::MinimizeResult climb_on(const Ground& on, const char* stage, double gain_left);
  double gain_at_least(const optim::MinimizeResult& climb, double entries) const;
  bool explains_little(double value) const;
  void move_base(optim::MinimizeResult& best);
  void finish();
  double weight(Index level) const;
  void begin_part(Index level);

  Search& search_;
  Levels levels_;
  PartOfLearning part_;
  inference::Observations rows_;
  inference::Problem problem_;
  std::unique_ptr<inference::Inference> method_;
  Vector theta_;
  Matrix hessian_;  // of minus the evidence per entry of y; empty: not known
  int before_;      // evaluations of the exact climbs
  double done_ = 0;
};

// How much of the climbing one level is.
double ApproximateClimb::weight(Index level) const {
  return static_cast<double>(level) * usual_evaluations(level, rows_.size(), theta_.size(),
                                                        !search_.choice().solve_levels.empty());
}

void ApproximateClimb::begin_part(Index level) {
  double total = weight(rows_.size());
  for (const Index rows : search_.choice().solve_levels) total += weight(rows);
  const double end = search_.choice().moves_base
                         ? part_.begin + kShareBeforeBase * (part_.end - part_.begin)
                         : part_.end;
  const double width = (end - part_.begin) / total, next = done_ + weight(level);
  search_.part(part_.begin + done_ * width, part_.begin + next * width);
  done_ = next;
}

// That of the few rows before, where their factorisations are little beside evaluations on more:
// the climb then begins with a step of Newton's method, and knows what is left to gain.
void ApproximateClimb::begin_with_exact_hessian() {
  const auto& levels = search_.choice().levels;
  if (levels.empty() || !search_.rules().uses_hessian ||
      kFewForHessian * levels.back() > rows_.size())
    return;
  hessian_ = search_.hessian(search_.rows(levels.back()), theta_);
}

optim::MinimizeResult ApproximateClimb::climb_level(std::size_t number) {
  const Index level = levels_.rows(number);
  const auto rows = search_.rows(level);
  auto problem = search_.problem_on(rows);
  const auto method = search_.approximation(rows, problem, theta_, method_->base_points());
  const Index p = theta_.size();
  begin_part(level);
  auto best =
      climb_on({*method, problem, rows}, "learn (fewer rows)",
               std::max(gain_to_leave(Search::entries(rows)), levels_.gain_to_leave(number, p)));
  // Where there is no evidence on these rows there may still be one on more.
  if (!std::isfinite(best.value)) return best;
  theta_ = best.theta;
  hessian_ = search_.last_hessian();
  search_.reached(theta_);
  // Without any the climb on more rows would begin in the dark.
  const bool affordable =
      hessian_.size() == 0 || hessian_by_differences(level, rows_.size(), theta_.size());
  if (!search_.rules().uses_hessian || !affordable) return best;
  Matrix own = search_.hessian(*method, std::move(problem), rows, theta_, best.gradient);
  if (own.size() > 0) hessian_ = std::move(own);
  return best;
}

optim::MinimizeResult ApproximateClimb::climb_all() {
  begin_part(rows_.size());
  return climb_on({*method_, problem_, rows_}, "learn (approximation)",
                  hessian_.size() > 0 ? gain_to_leave(Search::entries(rows_)) : 0);
}

// A Hessian that is not that of this place, as where the climb came from a far worse one, may
// promise too little: where the climb ends although more is to be had, it goes on without, for as
// long as that pays.
optim::MinimizeResult ApproximateClimb::climb_on(const Ground& on, const char* stage,
                                                 double gain_left) {
  const double entries = Search::entries(on.rows), doubt = std::max(gain_left, kGainToDoubt);
  const double slow = kGainLeftPerEntry * entries;
  auto best = search_.climb(on.method, on.problem, on.rows, theta_, stage,
                            {.hessian = hessian_, .gain_left = gain_left, .slow_gain = slow});
  for (double gain = HUGE_VAL;
       gain > doubt && best.converged() &&
       std::max(entries * last_gain(best), gain_at_least(best, entries)) > doubt;) {
    auto next = search_.climb(on.method, on.problem, on.rows, best.theta, stage,
                              {.gain_left = std::max(gain_left, gain_to_leave(entries)),
                               .slow_gain = slow,
                               .steps_taken = best.iterations,
                               .value = best.value,
                               .gradient = best.gradient});
    gain = entries * (best.value - next.value);
    if (!(gain > 0)) break;
    next.iterations += best.iterations;
    best = std::move(next);
  }
  return best;
}

// At a maximum the curvature along a log parameter is at most about N/2, which that of the noise is
// where all is noise: a gradient g then leaves g^2 / N to gain at least.
double ApproximateClimb::gain_at_least(const optim::MinimizeResult& climb, double entries) const {
  double most = 0;
  for (Index i = 0; i < climb.gradient.size(); ++i)
    if (!search_.box().blocks(i, climb.theta(i), -climb.gradient(i)))
      most = std::max(most, entries * climb.gradient(i) * climb.gradient(i));
  return most;
}

// The first level, or all rows. Few rows may have led to lengthscales that are too short for the
// base points of many: all is noise to them there, and the climb stays. Then the start values are
// tried as well, with base points of their own, and the larger evidence is kept.
optim::MinimizeResult ApproximateClimb::climb_first() {
  const auto climb = [&] { return levels_.last(0) ? climb_all() : climb_level(0); };
  auto best = climb();
  if (search_.choice().levels.empty() || !explains_little(best.value)) return best;
  Vector theta = std::exchange(theta_, search_.box().inside(search_.start().log_parameters()));
  Matrix hessian = std::exchange(hessian_, {});
  auto method = std::exchange(method_, search_.approximation(rows_, problem_, theta_));
  search_.use(method_.get());
  done_ = 0;
  auto other = climb();
  if (other.value < best.value) {
    search_.report.from_start_values = true;
    return other;
  }
  theta_ = std::move(theta);
  hessian_ = std::move(hessian);
  method_ = std::move(method);
  search_.use(method_.get());
  search_.remember(best.theta);
  return best;
}

// Hardly more than noise alone does. `value`: minus the evidence per entry of y.
bool ApproximateClimb::explains_little(double value) const {
  if (!problem_.gaussian()) return false;
  const auto y = rows_.y.col(0).array();
  const double variance = (y - y.mean()).square().mean();
  const double noise_alone = 0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance);
  return !(value < noise_alone - kLittleExplained);
}

// The base points climb with the hyperparameters, from where those alone have led.
void ApproximateClimb::move_base(optim::MinimizeResult& best) {
  search_.part(part_.begin + kShareBeforeBase * (part_.end - part_.begin), part_.end);
  const auto moved = climb_base(search_, *method_, best.theta);
  const double entries = Search::entries(rows_);
  search_.report.base_evaluations = moved.evaluations;
  best.theta = moved.theta;
  best.value = -moved.evidence / entries;
  best.gradient = -moved.gradient / entries;
}

// Stopped or not, what was learned is learned with these base points.
void ApproximateClimb::finish() {
  auto& report = search_.report;
  report.approximate_evaluations = report.evaluations - before_;
  report.evaluations = before_;
  search_.finish_approximation(*method_, rows_);
  search_.use(nullptr);
}

Climbed ApproximateClimb::run() {
  begin_with_exact_hessian();
  before_ = search_.report.evaluations;
  search_.use(method_.get());
  optim::MinimizeResult best;
  try {
    best = climb_first();
    for (std::size_t i = 1; i < levels_.size(); ++i) {
      search_.report.level_evaluations = search_.report.evaluations - before_;
      best = levels_.last(i) ? climb_all() : climb_level(i);
    }
    if (search_.choice().moves_base && std::isfinite(best.value)) move_base(best);
  } catch (const Interrupted&) {
    finish();
    throw;
  }
  if (!std::isfinite(best.value))
    throw ToleranceNotReached(fmt::format(
        "the evidence of {} is not a number in double precision where learning begins; begin with "
        "more `noise`, or another `lengthscale` or `signal_variance`",
        search_.choice().approximation));
  if (rows_.size() == search_.all().size())
    search_.remember(best.theta);  // told by its own step
  else
    search_.reached(best.theta);
  finish();
  auto value = search_.value_of(best, rows_);
  value.method = search_.choice().approximation;
  return {best.theta, std::move(value)};
}

}  // namespace

std::vector<Index> approximation_levels(const inference::InferenceInfo& method,
                                        const inference::CostSetting& all, Index before) {
  const auto seconds_on = [&](Index rows) {
    auto fewer = all;
    fewer.n = rows;
    if (fewer.rank) fewer.rank = std::min(*fewer.rank, rows);
    if (fewer.blocks) fewer.blocks = level_blocks(*fewer.blocks, rows, all.n);
    return method.cost(fewer).seconds;
  };
  const Index base = method.abilities.base ? all.rank.value_or(0) : 0;
  const Index least = std::max({kLeastLevel, kRowsOfBase * base, kRowsOfExact * before});
  std::vector<Index> out;
  Index next = all.n;
  for (Index n = all.n / kLevelRatio; n >= least; n /= kLevelRatio) {
    if (seconds_on(n) > kWorthLevel * seconds_on(next)) break;
    out.insert(out.begin(), n);
    next = n;
  }
  return out;
}

double usual_evaluations(Index level, Index all, Index parameters, bool after_levels) {
  if (level == all) return after_levels ? kUsualOnLast : kUsualAlone;
  const double hessian =
      hessian_by_differences(level, all, parameters) ? static_cast<double>(parameters) : 0;
  return kUsualOnLevel + hessian;
}

Climbed climb_approximation(Search& search, const Vector& start, PartOfLearning part) {
  return ApproximateClimb(search, start, part).run();
}

}  // namespace mercer::training
