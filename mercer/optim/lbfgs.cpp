#include "mercer/optim/lbfgs.hpp"

#include <fmt/format.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/optim/axes.hpp"
#include "mercer/optim/line_search.hpp"

namespace mercer::optim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double kLongestStep = 1;  // of a first step by a known Hessian, along each of its axes
// Pairs of steps and changes of the gradient before what the model promises is believed, and last
// steps that must have gained no more than that.
constexpr Index kPairsToTrust = 5, kStepsToTrust = 3;

enum class Ending {
  none,
  small_gradient,
  nothing_to_gain,
  value_is_flat,
  observer_said_stop,
  iteration_limit,
  line_search_failed
};

/// The inverse Hessian as L-BFGS knows it: the last steps and what they changed in the gradient.
class Memory {
 public:
  Memory(int most, bool scaled) : most_(static_cast<std::size_t>(most)), scaled_(scaled) {}
  bool empty() const { return pairs_.empty(); }
  Index size() const { return static_cast<Index>(pairs_.size()); }
  void clear() { pairs_.clear(); }
  void add(Vector s, Vector y);
  Vector inverse_times(Vector g) const;

 private:
  struct Pair {
    Vector s, y;
    double sy;
  };
  std::size_t most_;
  bool scaled_;  // variables are such that the Hessian is about the identity
  std::deque<Pair> pairs_;
};

void Memory::add(Vector s, Vector y) {
  const double sy = s.dot(y);
  // A step that ended before the slope fell tells of no positive curvature.
  if (!(sy > std::numeric_limits<double>::epsilon() * s.norm() * y.norm())) return;
  if (pairs_.size() == most_) pairs_.pop_front();
  pairs_.push_back({std::move(s), std::move(y), sy});
}

// The recursion of Nocedal (1980).
Vector Memory::inverse_times(Vector g) const {
  std::vector<double> alpha(pairs_.size());
  for (std::size_t i = pairs_.size(); i-- > 0;) {
    alpha[i] = pairs_[i].s.dot(g) / pairs_[i].sy;
    g -= alpha[i] * pairs_[i].y;
  }
  if (!scaled_ && !pairs_.empty()) g *= pairs_.back().sy / pairs_.back().y.squaredNorm();
  for (std::size_t i = 0; i < pairs_.size(); ++i)
    g += (alpha[i] - pairs_[i].y.dot(g) / pairs_[i].sy) * pairs_[i].s;
  return g;
}

class Run {
 public:
  Run(const Objective& f, const Box& box, const LbfgsOptions& options, const Observer& observer)
      : f_(f), box_(box), options_(options), observer_(observer) {}

  MinimizeResult minimise(ConstVectorView start);

 private:
  struct Point {
    Vector u, gradient;  // by u
    double value = infinity;
  };
  Point evaluate(Vector u);
  double evaluate_at(const Vector& z, Vector& g);
  double call_objective(const Vector& theta, Vector& gradient);
  Point first_point(const Vector& z);
  void scale(const Vector& z, const Vector& g);
  bool scaled() const { return axes_.size() > 0; }
  Vector to_z(ConstVectorView u) const {
    return scaled() ? Vector(origin_ + axes_ * u) : Vector(u);
  }
  bool small_gradient(const Point& p) const {
    return !scaled() &&
           p.gradient.norm() <= options_.gradient_tolerance * std::max(1.0, p.u.norm());
  }
  double relative(double tolerance, double value) const {
    return tolerance * std::max(1.0, std::abs(value));
  }
  Vector shortened(const Vector& direction, const Vector& gradient) const;
  Point step_from(const Point& here, const Vector& direction, bool first);
  Ending descend(Point here);
  bool trusts(const Memory& memory, const Point& here) const;
  Ending after_step(const Point& here, double to_gain, const Memory& memory);
  void conclude(Ending ending);

  const Objective& f_;
  const Box& box_;
  const LbfgsOptions& options_;
  const Observer& observer_;
  Timer timer_;
  MinimizeResult result_;
  // z = origin + axes u, when the Hessian is known: in u it is the identity. Without: z = u.
  Vector origin_;
  Matrix axes_;
  std::string rejection_;
};

double Run::call_objective(const Vector& theta, Vector& gradient) {
  try {
    const double value = f_(theta, gradient);
    if (std::isfinite(value) && gradient.allFinite()) return value;
    rejection_ = "the value or its gradient is not finite";
  } catch (const NotPositiveDefinite& e) {
    rejection_ = e.what();
  }
  ++result_.rejected_evaluations;
  return infinity;
}

double Run::evaluate_at(const Vector& z, Vector& g) {
  const Vector theta = box_.to_theta(z);
  Vector gradient = Vector::Zero(z.size());
  g = gradient;
  ++result_.evaluations;
  const double value = call_objective(theta, gradient);
  if (value == infinity) return infinity;
  g = gradient.cwiseProduct(box_.slope(z));
  if (value < result_.value) {
    result_.theta = theta;
    result_.value = value;
    result_.gradient = gradient;
  }
  return value;
}

Run::Point Run::evaluate(Vector u) {
  Point out{std::move(u), {}, infinity};
  out.value = evaluate_at(to_z(out.u), out.gradient);
  if (scaled()) out.gradient = axes_.transpose() * out.gradient;
  return out;
}

// Axes in which the given Hessian, made positive, is the identity.
void Run::scale(const Vector& z, const Vector& g) {
  const Vector slope = box_.slope(z);
  Matrix h = slope.asDiagonal() * (0.5 * (options_.hessian + options_.hessian.transpose())) *
             slope.asDiagonal();
  h.diagonal() += box_.second_derivative(z).cwiseProduct(result_.gradient);
  const auto axes = positive_axes(h, g, kLongestStep);
  const Vector curvature = axes.curvature.cwiseMax(options_.least_curvature);
  origin_ = z;
  axes_ = axes.directions * curvature.cwiseSqrt().cwiseInverse().asDiagonal();
}

Run::Point Run::first_point(const Vector& z) {
  const Index n = z.size();
  const bool known = options_.hessian.size() > 0;
  if (known && (options_.hessian.rows() != n || options_.hessian.cols() != n))
    throw DimensionMismatch("lbfgs: size of the hessian", options_.hessian.size(),
                            "parameters squared", n * n);
  if (!options_.hessian.allFinite())
    throw InvalidArgument("lbfgs: the hessian has a value that is not finite");
  Point here = evaluate(z);
  if (!known || here.value == infinity) return here;
  scale(z, here.gradient);
  return {Vector::Zero(n), axes_.transpose() * here.gradient, here.value};
}

// A direction of descent along which no variable moves further than the limit. Those that would are
// held back alone, so that one flat variable does not shorten the steps of all others; where that
// leaves no descent, all are.
Vector Run::shortened(const Vector& direction, const Vector& gradient) const {
  const double limit = options_.longest_step;
  const Vector in_z = scaled() ? Vector(axes_ * direction) : direction;
  const double longest = in_z.cwiseAbs().maxCoeff();
  if (limit == 0 || !(longest > limit)) return direction;
  const Vector held = in_z.cwiseMin(limit).cwiseMax(-limit);
  Vector out = scaled() ? Vector(axes_.partialPivLu().solve(held)) : held;
  const Vector all = direction * (limit / longest);
  return out.dot(gradient) <= all.dot(gradient) ? out : all;
}

// The next point along the direction; an infinite value when there is none.
Run::Point Run::step_from(const Point& here, const Vector& direction, bool first) {
  std::vector<std::pair<double, Point>> trials;
  const LinePoint start{0, here.value, here.gradient.dot(direction)};
  const auto line = [&](double step) -> LinePoint {
    trials.emplace_back(step, evaluate(here.u + step * direction));
    const Point& p = trials.back().second;
    return {step, p.value, p.gradient.dot(direction)};
  };
  // Without any curvature, a first step of length 1.
  const double length = first ? 1 / direction.norm() : 1.0;
  const auto found = line_search(line, start, length);
  for (auto& [step, point] : trials)
    if (step == found.step) return std::move(point);
  return {};
}

// The model of a given Hessian is trusted at once. Without one, the first pairs know little but the
// steepest directions: the last steps must have gained as little as the model promises.
bool Run::trusts(const Memory& memory, const Point& here) const {
  if (scaled()) return true;
  const Index before = result_.history.rows() - 1 - kStepsToTrust;
  return memory.size() >= std::min(here.u.size(), kPairsToTrust) && before >= 0 &&
         result_.history(before, 0) - here.value <= options_.gain_tolerance;
}

Ending Run::after_step(const Point& here, double to_gain, const Memory& memory) {
  ++result_.iterations;
  const Eigen::Vector2d row(here.value, here.gradient.norm());
  result_.history.append(row);
  if (observer_ && observer_({.number = result_.iterations,
                              .value = here.value,
                              .target = 0,
                              .seconds = timer_.seconds()}) == Action::stop)
    return Ending::observer_said_stop;
  if (small_gradient(here)) return Ending::small_gradient;
  if (trusts(memory, here) && to_gain <= options_.gain_tolerance) return Ending::nothing_to_gain;
  const Index last = result_.history.rows() - 1, before = last - options_.value_window;
  if (before >= 0 &&
      result_.history(before, 0) - here.value <= relative(options_.value_tolerance, here.value))
    return Ending::value_is_flat;
  return result_.iterations >= options_.max_iterations ? Ending::iteration_limit : Ending::none;
}

Ending Run::descend(Point here) {
  Memory memory(options_.memory, scaled());
  if (small_gradient(here)) return Ending::small_gradient;
  Vector towards = memory.inverse_times(here.gradient);
  if (scaled() && 0.5 * here.gradient.dot(towards) <= options_.gain_tolerance)
    return Ending::nothing_to_gain;
  double gained_since_restart = infinity;
  for (;;) {
    const bool first = memory.empty() && !scaled();
    Point next = step_from(here, first ? -towards : shortened(-towards, here.gradient), first);
    if (next.value == infinity) {
      // Once more from here with an empty memory, if that has got anywhere since the last time.
      if (memory.empty() || gained_since_restart <= relative(options_.value_tolerance, here.value))
        return Ending::line_search_failed;
      ++result_.restarts;
      memory.clear();
      gained_since_restart = 0;
      towards = here.gradient;
      continue;
    }
    const double gained = here.value - next.value;
    gained_since_restart += gained;
    memory.add(next.u - here.u, next.gradient - here.gradient);
    here = std::move(next);
    towards = memory.inverse_times(here.gradient);
    const double to_gain = 0.5 * here.gradient.dot(towards);
    const Ending ending = after_step(here, to_gain, memory);
    if (ending != Ending::none) return ending;
  }
}

void Run::conclude(Ending ending) {
  const auto end = [&](StopReason stop, std::string message) {
    result_.stop = stop;
    result_.message = std::move(message);
  };
  if (!std::isfinite(result_.value))
    return end(StopReason::breakdown,
               fmt::format("the objective cannot be evaluated at the start: {}", rejection_));
  switch (ending) {
    case Ending::small_gradient:
      return end(StopReason::converged, "the gradient is below its tolerance");
    case Ending::nothing_to_gain:
      return end(StopReason::converged, "another step would gain less than its tolerance");
    case Ending::value_is_flat:
      return end(
          StopReason::converged,
          fmt::format("the last {} iterations gained nothing to speak of", options_.value_window));
    case Ending::observer_said_stop:
      return end(StopReason::interrupted, "stopped by request");
    case Ending::iteration_limit:
      return end(StopReason::iteration_limit, "the iteration limit was reached");
    default:
      return end(StopReason::stagnation,
                 rejection_.empty()
                     ? "no step along the search direction improves the objective"
                     : "no step improves the objective; the last rejection: " + rejection_);
  }
}

MinimizeResult Run::minimise(ConstVectorView start) {
  const Index n = start.size();
  const Vector inside = box_.inside(start);
  result_.start_moved = (inside.array() != start.array()).any();
  result_.theta = inside;
  result_.value = infinity;
  result_.gradient = Vector::Zero(n);
  Point here = first_point(box_.to_z(inside));
  conclude(here.value == infinity ? Ending::none : descend(std::move(here)));
  for (Index i = 0; i < n; ++i) result_.bounds_hit.push_back(box_.hit(i, result_.theta(i)));
  result_.seconds = timer_.seconds();
  return std::move(result_);
}

}  // namespace

MinimizeResult lbfgs(const Objective& f, ConstVectorView theta, const Box& box,
                     const LbfgsOptions& options, const Observer& observer) {
  validate(options);
  box.check_size(theta.size());
  if (theta.size() == 0) throw InvalidArgument("lbfgs: there is no parameter to minimise over");
  if (!theta.allFinite()) throw InvalidArgument("lbfgs: the start has a value that is not finite");
  return Run(f, box, options, observer).minimise(theta);
}

}  // namespace mercer::optim
