// The Vecchia likelihood by L-BFGS, corrected by exact gradients, on levels of more and more rows.
// At theta_k the exact gradient differs from that of the surrogate by D, which is followed as a
// linear function of theta (discrepancy.hpp), and theta_{k+1} maximises the surrogate and the
// integral of D. At the fixed point the exact gradient is zero.
//   Levels: of more and more rows (levels.hpp). A level begins with theta and D of the last, D
//   scaled by the number of rows, and ends as soon as more gradients there would not help the next.
//   The end is honest: on the last level g'F^-1 g / 2 (with a prior of unit width) is the log
//   likelihood that is still to be gained. A posterior standard deviation in every parameter is
//   p/2; a run ends within half of one, p/8, or within what the noise of g alone would show. A
//   budget, counted in products of all rows, may end the exact gradients before. The rows are then
//   climbed with the correction of the last level that had some, and the report says so. A gradient
//   comes from solves, or from a factorisation of the rows of the level: on few rows, and where
//   memory suffices and solves fail (noise at rounding of the signal) or take longer. Nothing is
//   learned from solves that failed: without memory for a factorisation the rest of the way is the
//   surrogate's with the corrections until then, and the report says so. `vecchia` is the surrogate
//   alone. Cost: up to four exact gradients on a level, usually two to four on the last, and some
//   ten evaluations of the surrogate on each.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "mercer/training/archive.hpp"
#include "mercer/training/discrepancy.hpp"
#include "mercer/training/gradients.hpp"
#include "mercer/training/levels.hpp"
#include "mercer/training/surrogate.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr int kMostCorrections = 10, kDefaultSteps = 100, kSurrogateSteps = 60, kInnerSteps = 12;
// The gain of half a posterior standard deviation of one parameter.
constexpr double kHalfDeviation = 0.125;
// Solves are carried further once so little is left to gain.
constexpr double kNearGain = 5.0;
// A climb of the surrogate leaves this share of what there is to gain, which counts up to so much.
constexpr double kShareToLeave = 0.02, kFarGain = 50;
// Neighbours are found anew after a move of this size in any log parameter.
constexpr double kFarFromNeighbours = 0.5;
constexpr double kFirstTrust = 1.0, kLeastTrust = 0.05, kMostTrust = 2;
// Solves on r times the rows are expected to take r to this power times the iterations.
constexpr double kIterationsPower = 0.25;

class Corrections {
 public:
  explicit Corrections(Search& search);
  Vector run(const Vector& start);

 private:
  // The rows of a level, and what is asked of them.
  struct Level {
    Level(Search& search, Index rows)
        : gradients(search, rows),
          surrogate(search, gradients.rows(), {.neighbours = kCorrectedNeighbours}) {}
    GradientsBySolves gradients;
    Surrogate surrogate;
  };

  void visit_state(Archive& archive);
  void keep();
  void resume();
  bool begin();
  bool next_level();
  bool correct();
  bool measure(double tolerance);
  optim::Box near() const;
  void move_on(const optim::Box& box, int steps);
  void trust_anew();
  void choose_way();
  bool affordable(double expected) const;
  double expected_products(std::size_t level) const;
  double most_to_leave(double noise) const;
  Vector free_part(const Vector& g) const;
  bool last() const { return levels_.last(level_); }
  bool stopped() const { return at_->gradients.stopped(); }
  double fraction() const;

  Search& search_;
  Levels levels_;
  std::unique_ptr<Level> at_;
  // Of the last exact gradient.
  Vector gradient_;
  double noise_ = 0;
  // What a checkpoint holds: see visit_state.
  std::size_t level_ = 0;
  int step_ = 0, level_step_ = 0;
  Vector theta_, neighbours_at_, last_move_;
  Discrepancy discrepancy_;
  Vector trust_;  // the longest move of each parameter
  double gain_ = HUGE_VAL;
  double iterations_ = kUsualIterations;
  Index iterations_on_ = 0;    // rows
  Index factorable_rows_ = 0;  // at the start of the run
  bool done_ = false, budget_spent_ = false, solves_failed_ = false;
};

Corrections::Corrections(Search& search)
    : search_(search),
      levels_(search.choice()),
      discrepancy_(search.start().log_parameters().size()),
      factorable_rows_(search.choice().factorable_rows) {}

void Corrections::visit_state(Archive& archive) {
  archive.number("step", step_);
  archive.number("level_step", level_step_);
  archive.array("trust", trust_);
  archive.number("gain", gain_);
  archive.number("iterations", iterations_);
  archive.number("iterations_on", iterations_on_);
  archive.number("products", search_.report.products);
  archive.number("done", done_);
  archive.number("budget_spent", budget_spent_);
  archive.number("solves_failed", solves_failed_);
  archive.number("factorable_rows", factorable_rows_);
  archive.number("failed_gradients", search_.report.failed_gradients);
  archive.number("loose_gradients", search_.report.loose_gradients);
  archive.number("gradient_rows", search_.report.gradient_rows);
  archive.array("theta", theta_);
  archive.array("neighbours_at", neighbours_at_);
  archive.array("last_move", last_move_);
  archive.array("gradient", search_.report.gradient);
  archive.array("standard_error", search_.report.standard_error);
  discrepancy_.visit_state(archive);
  archive.method(at_->gradients.method(), at_->gradients.problem());
}

void Corrections::keep() {
  Archive archive;
  archive.number("level", level_);
  visit_state(archive);
  search_.keep(archive.state());
}

void Corrections::resume() {
  const Index parameters = theta_.size();
  Archive archive(search_.trainer_state());
  archive.number("level", level_);
  if (level_ >= levels_.size()) throw ModelFileError("the checkpoint is damaged: no such level");
  at_ = std::make_unique<Level>(search_, levels_.rows(level_));
  visit_state(archive);
  if (theta_.size() != parameters)
    throw ModelFileError("the checkpoint is damaged: it is of another number of parameters");
  at_->gradients.limit_factorisations(factorable_rows_);
  choose_way();
  search_.remember(theta_);
  search_.report.resumed_gradients = step_;
  search_.report.steps += step_;
  at_->surrogate.renew(neighbours_at_);
}

// At a bound, a gradient that points out of the box is nothing to be gained.
Vector Corrections::free_part(const Vector& g) const {
  Vector out = g;
  for (Index i = 0; i < g.size(); ++i)
    if (search_.box().blocks(i, theta_(i), g(i))) out(i) = 0;
  return out;
}

double Corrections::fraction() const {
  return levels_.fraction(level_,
                          std::min(0.95, static_cast<double>(level_step_) / kMostCorrections));
}

// Factorisations where they are expected to take less than solves, or solves have failed.
void Corrections::choose_way() {
  auto& gradients = at_->gradients;
  if (!gradients.factorable() || gradients.factored()) return;
  const bool few = !last() && levels_.rows(level_) <= kFactoredLevel;
  if (few || solves_failed_ || gradients.factored_products() < expected_products(level_))
    gradients.factor();
}

// Products of all rows that one gradient on a level is expected to take.
double Corrections::expected_products(std::size_t level) const {
  if (level == level_ && at_->gradients.factored()) return at_->gradients.factored_products();
  const double growth = iterations_on_ > 0 ? static_cast<double>(levels_.rows(level)) /
                                                 static_cast<double>(iterations_on_)
                                           : 1;
  const double iterations = iterations_ * std::pow(growth, kIterationsPower);
  return levels_.share(level) * (iterations * static_cast<double>(at_->gradients.columns()) +
                                 kPassProducts * (1 + kErrorPasses));
}

bool Corrections::affordable(double expected) const {
  const auto& budget = search_.choice().budget;
  return !budget || search_.report.products + expected <= static_cast<double>(*budget);
}

// The gain that may be left on this level.
double Corrections::most_to_leave(double noise) const {
  const double most = last() ? kHalfDeviation * static_cast<double>(theta_.size())
                             : levels_.gain_to_leave(level_, theta_.size());
  return std::max({kNoGain, noise, most});
}

// The first level: the surrogate alone, from the start. False when stopped.
bool Corrections::begin() {
  at_ = std::make_unique<Level>(search_, levels_.rows(0));
  choose_way();
  // Exact gradients go on from there: to leave a quarter of what may be left in the end will do.
  const double gain = 0.25 * kHalfDeviation * static_cast<double>(theta_.size());
  theta_ = at_->surrogate.maximise(theta_, kSurrogateSteps, gain);
  if (at_->surrogate.stop() == StopReason::interrupted) return false;
  neighbours_at_ = at_->surrogate.neighbours_at();
  search_.reached(theta_);
  return true;
}

// The box around theta_ that the correction is trusted in.
optim::Box Corrections::near() const {
  const auto& box = search_.box();
  return {(theta_ - trust_).cwiseMax(box.lower()), (theta_ + trust_).cwiseMin(box.upper())};
}

// Maximises the corrected surrogate over a box.
void Corrections::move_on(const optim::Box& box, int steps) {
  // No further than the next gradient can tell.
  const double gain = std::max(kFineGain, kShareToLeave * std::min(gain_, kFarGain));
  const Vector next = at_->surrogate.climb(theta_, discrepancy_, box, steps, gain);
  last_move_ = next - theta_;
  theta_ = next;
  // Part of a climb is good enough for a model, but not to go on from.
  if (at_->surrogate.stop() == StopReason::interrupted) at_->gradients.stop();
}

// To more rows; to all at once where the budget does not last for a gradient in between. False when
// stopped.
bool Corrections::next_level() {
  const auto before = static_cast<double>(levels_.rows(level_));
  const auto known = at_->gradients.method().for_more_rows();
  do {
    ++level_;
  } while (!last() && !affordable(expected_products(level_)));
  level_step_ = 0;
  const double r = static_cast<double>(levels_.rows(level_)) / before;
  at_.reset();  // first: both at once may not fit
  at_ = std::make_unique<Level>(search_, levels_.rows(level_));
  if (!known.empty()) at_->gradients.method().load(known, at_->gradients.problem());
  at_->gradients.limit_factorisations(factorable_rows_);
  choose_way();
  discrepancy_.scale(r);
  // What is expected there.
  gain_ = Levels::gain_on_more(gain_, r, theta_.size());
  neighbours_at_ = theta_;
  at_->surrogate.renew(theta_);
  // As far as it takes: rows that fewer did not have (replicates, which tell the noise) are known
  // to the surrogate.
  move_on(search_.box(), kSurrogateSteps);
  last_move_.resize(0);
  search_.reached(theta_);
  if (!stopped()) keep();
  return !stopped();
}

// The exact gradient at theta_, what it says of the discrepancy and of what is left to gain. False
// when there is none.
bool Corrections::measure(double tolerance) {
  auto& report = search_.report;
  auto& [gradients, surrogate] = *at_;
  const auto exact = gradients.evaluate(theta_, {tolerance, kErrorPasses, true});
  budget_spent_ = budget_spent_ || gradients.over_budget();
  if (gradients.stopped() || gradients.over_budget()) return false;
  solves_failed_ = report.failed_gradients > 0;
  if (gradients.failed()) {
    report.stop = StopReason::stagnation;
    return false;
  }
  gradient_ = exact.gradient;
  if (!gradient_.allFinite()) {
    report.stop = StopReason::breakdown;
    return false;
  }
  if (!gradients.factored()) {
    iterations_ = exact.iterations;
    iterations_on_ = levels_.rows(level_);
  }
  ++step_;
  ++level_step_;
  ++report.steps;
  const Index p = theta_.size();
  const auto v = surrogate.evaluate(theta_);
  const Matrix f = v.information + Matrix::Identity(p, p);
  discrepancy_.observe(theta_, gradient_ - v.gradient, f);
  if ((theta_ - neighbours_at_).lpNorm<Eigen::Infinity>() > kFarFromNeighbours) {
    neighbours_at_ = theta_;
    surrogate.renew(theta_);
    discrepancy_.replace(theta_, gradient_ - surrogate.evaluate(theta_).gradient);
  }
  const Eigen::LLT<Matrix> information(f);
  const auto gain_of = [&](const Vector& g) { return 0.5 * g.dot(information.solve(g)); };
  gain_ = gain_of(free_part(gradient_));
  noise_ = 0;
  for (const auto& contrast : exact.contrasts.colwise())
    noise_ += gain_of(contrast) / static_cast<double>(exact.contrasts.cols());
  report.history.back().predicted_gain = gain_;
  report.history.back().noise_gain = noise_;
  return true;
}

// Where the gradient turned round the last move went too far; where it was cut short and did not,
// it may go further.
void Corrections::trust_anew() {
  for (Index i = 0; i < last_move_.size(); ++i) {
    const double move = std::abs(last_move_(i));
    if (gradient_(i) * last_move_(i) < 0)
      trust_(i) = std::max(kLeastTrust, std::min(trust_(i), 2 * move));
    else if (move > 0.9 * trust_(i))
      trust_(i) = std::min(kMostTrust, 2 * trust_(i));
  }
}

// One exact gradient at theta_ and the step that follows from it. False when the run is to end.
bool Corrections::correct() {
  if (!affordable(expected_products(level_))) {
    budget_spent_ = true;
    return last() ? false : next_level();
  }
  const double tolerance = last() && gain_ < kNearGain ? kTightTolerance : kLooseTolerance;
  if (!measure(tolerance)) return !last() && at_->gradients.over_budget() && next_level();
  const double enough = most_to_leave(noise_);
  if (gain_ > enough) trust_anew();
  if (!last() && (gain_ <= enough || level_step_ >= kMostOnLevel)) return next_level();
  done_ = gain_ <= enough && (at_->gradients.factored() || tolerance <= kTightTolerance);
  choose_way();
  if (gain_ > enough)
    move_on(near(), kInnerSteps);
  else if (!done_)
    gain_ = 0;  // the same again, with tight solves
  if (stopped()) return false;
  search_.reached(theta_);
  keep();
  if (!done_ &&
      search_.stopped(search_.stage(at_->gradients.rows()), fraction(),
                      fmt::format("correction {}, {:.3g} still to be gained", step_, gain_)))
    at_->gradients.stop();
  return !done_ && !stopped();
}

Vector Corrections::run(const Vector& start) {
  auto& report = search_.report;
  theta_ = start;
  trust_ = Vector::Constant(start.size(), kFirstTrust);
  report.stop = StopReason::iteration_limit;
  if (!search_.trainer_state().empty()) {
    resume();
  } else if (!begin()) {
    report.stop = StopReason::interrupted;
    return theta_;
  }
  const int most = search_.options().steps.value_or(kDefaultSteps);
  while (!done_ && step_ < most && level_step_ < kMostCorrections && correct()) {
  }
  // A limit of steps on fewer rows: all are climbed with the correction that is known.
  if (!last() && !stopped() && report.stop != StopReason::breakdown) {
    level_ = levels_.size() - 2;
    next_level();
  }
  report.budget_spent = budget_spent_;
  if (stopped())
    report.stop = StopReason::interrupted;
  else if (done_)
    report.stop = report.loose_gradients > 0 ? StopReason::stagnation : StopReason::converged;
  return theta_;
}

Vector run_surrogate(Search& search, const Vector& start) {
  const auto rows = search.rows(search.choice().rows);
  Surrogate surrogate(search, rows, {});
  Vector theta = surrogate.maximise(start, kSurrogateSteps);
  search.report.stop = surrogate.stop();
  if (surrogate.stop() != StopReason::interrupted) search.reached(theta);
  return theta;
}

std::string refusal_of_surrogate(const inference::Problem& problem) {
  if (problem.gaussian()) return {};
  return "the Vecchia likelihood, which `train=vecchia` and `train=lbfgs` by solves follow, is "
         "that "
         "of numbers with Gaussian noise; with another likelihood give another `train`, or auto";
}

}  // namespace
TrainerInfo lbfgs_info() {
  return {
      .name = "lbfgs",
      .summary =
          "L-BFGS: exact evidences on few rows; on many the Vecchia likelihood, "
          "corrected by exact gradients",
      .by_solves = true,
      .from_start_values = false,
      .on_surrogate = true,
      .also_exact = true,
      .in_levels = true,
      .preference = [](const inference::Problem&) { return 2; },
      .refusal = refusal_of_surrogate,
      .run = [](Search& search, const Vector& start) { return Corrections(search).run(start); }};
}

TrainerInfo vecchia_info() {
  return {.name = "vecchia",
          .summary = "L-BFGS on the Vecchia likelihood alone",
          .by_solves = true,
          .from_start_values = false,
          .on_surrogate = true,
          .surrogate_only = true,
          .words = "the Vecchia likelihood",
          .preference = [](const inference::Problem&) { return 1; },
          .refusal = refusal_of_surrogate,
          .run = run_surrogate};
}

}  // namespace mercer::training
