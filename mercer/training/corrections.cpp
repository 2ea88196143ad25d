// The Vecchia likelihood of all rows by L-BFGS, corrected by exact gradients: at theta_k the exact
// gradient g differs from that of the surrogate by c, and theta_{k+1} maximises
// surrogate(theta) + c'theta. At its fixed point the exact gradient is zero. A few exact gradients
// do what a hundred steps of Adam do, because the surrogate knows the curvature.
//   The end is honest: with F the information matrix (and a prior of unit width), g'F^-1 g / 2 is
//   the log likelihood that is still to be gained; a run ends when that is less than a tenth, where
//   the posterior of theta cannot tell any more, or within what the noise of g alone would show.
//   `vecchia` is the surrogate alone.
//   Cost: three to five exact gradients and some sixty evaluations of the surrogate.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "mercer/training/archive.hpp"
#include "mercer/training/gradients.hpp"
#include "mercer/training/surrogate.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr int kMostCorrections = 10, kDefaultSteps = 100, kSurrogateSteps = 60, kInnerSteps = 20;
// A gain in log likelihood below which the posterior of theta does not care.
constexpr double kNoGain = 0.1;
// Solves are carried further once so little is left to gain.
constexpr double kNearGain = 5.0;
// Neighbours are found anew after a move of this size in any log parameter.
constexpr double kFarFromNeighbours = 0.5;
constexpr double kFirstTrust = 1.0, kLeastTrust = 0.05;

class Corrections {
 public:
  explicit Corrections(Search& search)
      : search_(search), gradients_(search), surrogate_(search, gradients_.rows()) {}
  Vector run(const Vector& start);

 private:
  void visit_state(Archive& archive);
  bool correct(int most);
  void move_on(const Vector& gradient, const Vector& surrogate_gradient);
  Vector free_part(const Vector& g) const;

  Search& search_;
  GradientsBySolves gradients_;
  Surrogate surrogate_;
  // What a checkpoint holds: see visit_state.
  int step_ = 0;
  Vector theta_, neighbours_at_, last_move_;
  double trust_ = kFirstTrust;
  double gain_ = HUGE_VAL;
  bool done_ = false;
};

void Corrections::visit_state(Archive& archive) {
  archive.number("step", step_);
  archive.number("trust", trust_);
  archive.number("gain", gain_);
  archive.number("done", done_);
  archive.number("loose_gradients", search_.report.loose_gradients);
  archive.array("theta", theta_);
  archive.array("neighbours_at", neighbours_at_);
  archive.array("last_move", last_move_);
  archive.array("standard_error", search_.report.standard_error);
  archive.method(gradients_.method(), gradients_.problem());
}

// At a bound, a gradient that points out of the box is nothing to be gained.
Vector Corrections::free_part(const Vector& g) const {
  Vector out = g;
  for (Index i = 0; i < g.size(); ++i)
    if (search_.box().blocks(i, theta_(i), g(i))) out(i) = 0;
  return out;
}

// Maximises the corrected surrogate near theta_.
void Corrections::move_on(const Vector& gradient, const Vector& surrogate_gradient) {
  const auto& box = search_.box();
  const optim::Box near((theta_.array() - trust_).max(box.lower().array()).matrix(),
                        (theta_.array() + trust_).min(box.upper().array()).matrix());
  const Vector next =
      surrogate_.climb(theta_, gradient - surrogate_gradient, near, kInnerSteps, kFineGain);
  last_move_ = next - theta_;
  theta_ = next;
  // Part of a climb is good enough for a model, but not to go on from.
  if (surrogate_.stop() == StopReason::interrupted) {
    gradients_.stop();
    return;
  }
  if ((theta_ - neighbours_at_).lpNorm<Eigen::Infinity>() > kFarFromNeighbours) {
    neighbours_at_ = theta_;
    surrogate_.renew(theta_);
  }
}

// One exact gradient at theta_ and the step that follows from it. False when the run is to end.
bool Corrections::correct(int most) {
  auto& report = search_.report;
  const double tolerance = gain_ < kNearGain ? kTightTolerance : kLooseTolerance;
  const auto exact = gradients_.evaluate(theta_, {tolerance, kErrorPasses});
  if (gradients_.stopped()) return false;
  if (!exact.gradient.allFinite()) {
    report.stop = StopReason::breakdown;
    return false;
  }
  ++step_;
  ++report.steps;
  const auto v = surrogate_.evaluate(theta_);
  const Index p = theta_.size();
  const Eigen::LLT<Matrix> information(v.information + Matrix::Identity(p, p));
  const auto gain_of = [&](const Vector& g) { return 0.5 * g.dot(information.solve(g)); };
  gain_ = gain_of(free_part(exact.gradient));
  double noise = 0;
  for (const auto& contrast : exact.contrasts.colwise())
    noise += gain_of(contrast) / static_cast<double>(exact.contrasts.cols());
  report.history.back().predicted_gain = gain_;
  report.history.back().noise_gain = noise;

  const double enough = std::max(kNoGain, noise);
  // The gradient turned round along the last move: that went too far.
  if (last_move_.size() > 0 && exact.gradient.dot(last_move_) < 0 && gain_ > enough)
    trust_ = std::max(kLeastTrust, 0.5 * trust_);
  done_ = gain_ <= enough && tolerance <= kTightTolerance;
  if (gain_ > enough)
    move_on(exact.gradient, v.gradient);
  else if (!done_)
    gain_ = 0;  // the same again, with tight solves
  if (gradients_.stopped()) return false;
  search_.reached(theta_);
  Archive archive;
  visit_state(archive);
  search_.keep(archive.state());
  if (!done_ &&
      search_.stopped("learn (all rows)", std::min(0.95, static_cast<double>(step_) / most),
                      fmt::format("correction {}, {:.3g} still to be gained", step_, gain_)))
    gradients_.stop();
  return !done_ && !gradients_.stopped();
}

Vector Corrections::run(const Vector& start) {
  auto& report = search_.report;
  theta_ = start;
  report.stop = StopReason::iteration_limit;
  if (search_.trainer_state().empty()) {
    theta_ = surrogate_.maximise(theta_, kSurrogateSteps);
    if (surrogate_.stop() == StopReason::interrupted) {
      report.stop = StopReason::interrupted;
      return theta_;
    }
    neighbours_at_ = surrogate_.neighbours_at();
    search_.reached(theta_);
  } else {
    Archive archive(search_.trainer_state());
    visit_state(archive);
    if (theta_.size() != start.size())
      throw ModelFileError("the checkpoint is damaged: it is of another number of parameters");
    search_.remember(theta_);
    report.resumed_gradients = step_;
    report.steps += step_;
    surrogate_.renew(neighbours_at_);
  }
  const int most = std::min(search_.options().steps.value_or(kDefaultSteps), kMostCorrections);
  while (!done_ && step_ < most && correct(most)) {
  }
  if (gradients_.stopped())
    report.stop = StopReason::interrupted;
  else if (done_)
    report.stop = report.loose_gradients > 0 ? StopReason::stagnation : StopReason::converged;
  return theta_;
}

Vector run_surrogate(Search& search, const Vector& start) {
  const auto rows = search.rows(search.choice().rows);
  Surrogate surrogate(search, rows);
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
