#include "mercer/training/full_rows.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/training/search.hpp"

namespace mercer::training {
namespace {

using inference::Inference;
using inference::Problem;

// A step is worth its passes when it gains this much log evidence, or this much a row, at least:
// half a unit is one posterior standard deviation of one hyperparameter.
constexpr double kLeastGain = 0.5, kLeastGainPerRow = 1e-7;
// Step of the differences that the metric is taken from; in logarithms, as all steps here.
constexpr double kMetricDifference = 0.05;
constexpr double kLongestFullStep = 0.5;
// Curvatures below this share of the largest are taken for it.
constexpr double kFlat = 1e-6;
// Of a step that did not gain, what is tried next: at least and at most.
constexpr double kLeastOfStep = 0.1, kMostOfStep = 0.5;

/// Values and gradients that a checkpoint knows need no pass.
struct Visited {
  Vector theta;
  double value = 0;  // minus infinity where there is no evidence
  Vector gradient;   // empty: not asked for yet
};

class Climb {
 public:
  Climb(Search& search, const FullRows& full, const Vector& start);
  FullClimb run();

 private:
  void load();
  void keep();
  Visited& at(const Vector& theta);
  void find_gradient(Visited& place);
  Matrix metric(const Vector& theta);
  /// The step from here, inside the box, and what it is expected to gain.
  Vector step(const Visited& here, double& gain) const;
  void update_metric(const Visited& before, const Visited& after);
  Vector shorter(const Visited& here, const Vector& taken, double reached) const;
  void climb();
  void choose(const Vector& theta);

  Search& search_;
  const FullRows& full_;
  Problem problem_;
  Matrix base_;
  std::shared_ptr<Inference> method_;
  std::vector<Visited> visited_;  // never more than a few
  std::size_t best_ = 0;
  // Of minus the evidence of all rows: from the sample (empty: not known yet), and with the
  // secants since.
  Matrix sample_metric_, metric_;
  int values_ = 0;
};

// The base points that the sample was learned with; where there are none, those of these values.
Matrix base_points_for(Search& search, const Vector& theta) {
  auto problem = search.start();
  problem.set_log_parameters(theta);
  if (const auto& state = search.approximation_state; !state.empty()) {
    const auto method =
        inference::make(search.choice().approximation, problem, search.setup(search.all()));
    method->load(state, problem);
    return method->base_points();
  }
  return search.approximation(search.all(), problem, theta)->base_points();
}

Climb::Climb(Search& search, const FullRows& full, const Vector& start)
    : search_(search),
      full_(full),
      problem_(search.start()),
      base_(base_points_for(search, start)) {
  problem_.set_log_parameters(start);
  method_ =
      inference::make_streamed(search.choice().approximation, problem_, full.pass, Matrix(base_));
  visited_.reserve(2 * static_cast<std::size_t>(full.gradients) + 4);
  load();
}

void Climb::load() {
  const auto& from = search_.full_state();
  if (from.empty()) return;
  const Index p = problem_.log_parameters().size();
  const Matrix& theta = inference::saved_array(from, "theta");
  const Matrix& gradient = inference::saved_array(from, "gradient", theta.size());
  const Matrix& value = inference::saved_array(from, "value", theta.cols());
  const Matrix& known = inference::saved_array(from, "known", theta.cols());
  if (theta.rows() != p) throw ModelFileError("the checkpoint of the passes is damaged");
  for (Index i = 0; i < theta.cols(); ++i)
    visited_.push_back(
        {theta.col(i), value.data()[i], known.data()[i] != 0 ? Vector(gradient.col(i)) : Vector()});
  if (from.count("metric") > 0) sample_metric_ = inference::saved_array(from, "metric", p * p);
  search_.report.resumed_full_values = static_cast<int>(theta.cols());
}

void Climb::keep() {
  const Index p = problem_.log_parameters().size(), count = static_cast<Index>(visited_.size());
  Matrix theta(p, count), gradient = Matrix::Zero(p, count), value(count, 1), known(count, 1);
  for (Index i = 0; i < count; ++i) {
    const auto& place = visited_[static_cast<std::size_t>(i)];
    theta.col(i) = place.theta;
    value(i, 0) = place.value;
    known(i, 0) = place.gradient.size() > 0 ? 1 : 0;
    if (place.gradient.size() > 0) gradient.col(i) = place.gradient;
  }
  inference::State state;
  state["theta"] = std::move(theta);
  state["gradient"] = std::move(gradient);
  state["value"] = std::move(value);
  state["known"] = std::move(known);
  if (sample_metric_.size() > 0) state["metric"] = sample_metric_;
  search_.keep_full(std::move(state));
}

Visited& Climb::at(const Vector& theta) {
  ++values_;
  ++search_.report.full_evaluations;
  for (auto& place : visited_)
    if (place.theta == theta) return place;
  Visited place{theta, -HUGE_VAL, {}};
  problem_.set_log_parameters(theta);
  try {
    place.value = method_->evaluate(problem_, {.gradient = false}).value;
  } catch (const NotPositiveDefinite&) {  // said by the value
  }
  if (!std::isfinite(place.value)) place.value = -HUGE_VAL;
  visited_.push_back(std::move(place));
  keep();
  return visited_.back();
}

void Climb::find_gradient(Visited& place) {
  ++search_.report.full_gradients;
  if (place.gradient.size() > 0) return;
  problem_.set_log_parameters(place.theta);
  place.gradient = method_->evaluate(problem_, {.gradient = true}).gradient;
  keep();
}

// The Hessian of minus the evidence of the sample, by differences of gradients, times N/n.
Matrix Climb::metric(const Vector& theta) {
  const auto rows = search_.rows(std::min(search_.all().size(), kMetricRows));
  auto problem = search_.problem_on(rows);
  problem.set_log_parameters(theta);
  auto setup = search_.setup(rows);
  setup.sparse = {};
  setup.sparse.points = base_;
  const auto method = inference::make(search_.choice().approximation, problem, setup);
  const Index p = theta.size();
  const auto gradient_at = [&](const Vector& place) {
    problem.set_log_parameters(place);
    return Vector(-method->evaluate(problem, {}).gradient);
  };
  const Vector here = gradient_at(theta);
  Matrix out(p, p);
  for (Index i = 0; i < p; ++i) {
    if (search_.stopped("learn (curvature)", -1, fmt::format("{} of {}", i + 1, p)))
      throw Interrupted("interrupted at the curvature");
    const double by = theta(i) + kMetricDifference > search_.box().upper()(i) ? -kMetricDifference
                                                                              : kMetricDifference;
    Vector moved = theta;
    moved(i) += by;
    out.col(i) = (gradient_at(moved) - here) / by;
  }
  const double share = static_cast<double>(full_.rows) / Search::entries(rows);
  return share * 0.5 * (out + out.transpose());
}

// Parameters whose step would leave the box stay where they are, and the others step without them.
Vector Climb::step(const Visited& here, double& gain) const {
  const auto& box = search_.box();
  std::vector<Index> free;
  for (Index i = 0; i < here.theta.size(); ++i)
    if (!box.blocks(i, here.theta(i), here.gradient(i))) free.push_back(i);
  gain = 0;
  Vector out = Vector::Zero(here.theta.size());
  while (!free.empty()) {
    const Vector slope = here.gradient(free);
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(Matrix(metric_(free, free)));
    Vector curvature = eigen.eigenvalues().cwiseAbs();
    curvature = curvature.cwiseMax(std::max(kFlat * curvature.maxCoeff(), 1e-300));
    const Vector along = eigen.eigenvectors().transpose() * slope;
    Vector move = along.cwiseQuotient(curvature);
    const double longest = Vector(eigen.eigenvectors() * move).cwiseAbs().maxCoeff();
    if (longest > kLongestFullStep) move *= kLongestFullStep / longest;
    gain = along.dot(move) - 0.5 * move.cwiseAbs2().dot(curvature);
    out.setZero();
    out(free) = eigen.eigenvectors() * move;
    const auto leaves = [&](Index i) {
      const double to = here.theta(i) + out(i);
      return box.bounded() && (to < box.lower()(i) || to > box.upper()(i));
    };
    const auto stay = std::remove_if(free.begin(), free.end(), leaves);
    if (stay == free.end()) return out;
    free.erase(stay, free.end());
  }
  gain = 0;
  return Vector::Zero(here.theta.size());
}

// BFGS: the metric maps the step to the change of the gradient.
void Climb::update_metric(const Visited& before, const Visited& after) {
  const Vector s = after.theta - before.theta, y = before.gradient - after.gradient;
  const Vector bs = metric_ * s;
  const double sy = s.dot(y), sbs = s.dot(bs);
  if (!(sy > 1e-8 * s.norm() * y.norm()) || !(sbs > 0)) return;
  metric_ += y * y.transpose() / sy - bs * bs.transpose() / sbs;
}

// Where the parabola through value, slope and the value that was reached has its top.
Vector Climb::shorter(const Visited& here, const Vector& taken, double reached) const {
  const double slope = here.gradient.dot(taken);
  double share = kLeastOfStep;
  if (std::isfinite(reached))
    share = std::clamp(-0.5 * slope / (reached - here.value - slope), kLeastOfStep, kMostOfStep);
  return here.theta + share * taken;
}

void Climb::climb() {
  const double enough = std::max(kLeastGain, kLeastGainPerRow * static_cast<double>(full_.rows));
  auto& stop = search_.report.full_stop;
  stop = StopReason::iteration_limit;
  std::optional<Visited> before;
  for (int taken = 0; taken < full_.gradients && values_ <= full_.gradients; ++taken) {
    find_gradient(visited_[best_]);
    const Visited here = visited_[best_];
    if (!here.gradient.allFinite()) {
      stop = StopReason::breakdown;
      return;
    }
    if (sample_metric_.size() == 0) {
      sample_metric_ = metric(here.theta);
      keep();
    }
    if (before)
      update_metric(*before, here);
    else
      metric_ = sample_metric_;
    double gain = 0;
    const Vector move = step(here, gain);
    search_.report.full_steps.push_back({here.value, here.gradient.norm(), gain});
    if (!(gain > enough)) {
      stop = StopReason::converged;
      return;
    }
    Vector next = here.theta + move;
    double reached = at(next).value;
    if (!(reached > here.value) && values_ <= full_.gradients) {
      next = shorter(here, move, reached);
      reached = at(next).value;
    }
    if (!(reached > here.value)) {
      stop = StopReason::stagnation;
      return;
    }
    choose(next);
    ++search_.report.steps;
    search_.reached(next);
    before = here;
  }
}

void Climb::choose(const Vector& theta) {
  for (std::size_t i = 0; i < visited_.size(); ++i)
    if (visited_[i].theta == theta) best_ = i;
}

FullClimb Climb::run() {
  const Vector start = problem_.log_parameters();
  FullClimb out{start, {}, method_};
  out.likelihood.method = "none";
  if (search_.report.stop == StopReason::interrupted) return out;
  try {
    const double value = at(start).value;
    choose(start);
    if (!std::isfinite(value))
      throw ToleranceNotReached(fmt::format(
          "the evidence of {} over all rows is not a number in double precision at the values that "
          "the sample has led to; begin with more `noise`, or learn from a larger `reservoir`",
          search_.choice().approximation));
    // A sample that holds all rows has had its climb.
    if (full_.rows > search_.all().rows_before_merging()) climb();
  } catch (const Interrupted&) {
    search_.report.stop = search_.report.full_stop = StopReason::interrupted;
    if (visited_.empty()) return out;
  }
  const auto& best = visited_[best_];
  out.theta = best.theta;
  out.likelihood = {};
  out.likelihood.known = true;
  out.likelihood.value = out.likelihood.low = out.likelihood.high = best.value;
  out.likelihood.rows = full_.rows;
  out.likelihood.method = search_.choice().approximation;
  out.likelihood.gradient = best.gradient;
  return out;
}

}  // namespace

FullClimb climb_full_rows(Search& search, const FullRows& full, const Vector& start) {
  return Climb(search, full, start).run();
}

}  // namespace mercer::training
