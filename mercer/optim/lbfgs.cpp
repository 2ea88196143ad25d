#include "mercer/optim/lbfgs.hpp"

#include <fmt/format.h>
#include <lbfgs.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/optim/axes.hpp"

namespace mercer::optim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What the progress callback returns to end the C library's loop.
enum Ending {
  go_on = 0,
  observer_said_stop = 1,
  value_is_flat = 2,
  exception_waits = 3,
  nothing_to_gain = 4
};
constexpr double kLongestStep = 1;  // of a first step by a known Hessian, along each of its axes

/// The other side of the C callbacks. No exception may pass through the library: it waits here.
class Run {
 public:
  Run(const Objective& f, const Box& box, const LbfgsOptions& options, const Observer& observer)
      : f_(f), box_(box), options_(options), observer_(observer) {}

  MinimizeResult minimise(ConstVectorView start);

 private:
  static double evaluate_hook(void* self, const double* z, double* g, int n, double) {
    return static_cast<Run*>(self)->evaluate(z, g, n);
  }
  static int progress_hook(void* self, const double*, const double*, double value, double,
                           double gradient_norm, double, int, int, int) {
    return static_cast<Run*>(self)->progress(value, gradient_norm);
  }

  double evaluate(const double* u, double* g, int n);
  double evaluate_at(const Vector& z, Vector& g);
  void scale(const Vector& z);
  double expected_gain(double gradient_norm) const;
  Vector to_z(ConstVectorView u) const {
    return axes_.size() > 0 ? Vector(origin_ + axes_ * u) : Vector(u);
  }
  double call_objective(const Vector& theta, Vector& gradient);
  int progress(double value, double gradient_norm);
  int attempt(double* z, int n);
  void conclude(int code);

  const Objective& f_;
  const Box& box_;
  const LbfgsOptions& options_;
  const Observer& observer_;
  Timer timer_;
  MinimizeResult result_;
  // z = origin + axes u, when the Hessian is known: in u it is `steepness` times the identity, and
  // a step of Newton's method from the start has length 1. Without: z = u.
  Vector origin_;
  Matrix axes_;
  double steepness_ = 0;
  std::optional<std::pair<double, Vector>> first_;  // value and gradient (in u) at the origin
  std::string rejection_;
  std::exception_ptr exception_;
};

double Run::call_objective(const Vector& theta, Vector& gradient) {
  try {
    const double value = f_(theta, gradient);
    if (std::isfinite(value) && gradient.allFinite()) return value;
    rejection_ = "the value or its gradient is not finite";
  } catch (const NotPositiveDefinite& e) {
    rejection_ = e.what();
  } catch (...) {
    exception_ = std::current_exception();
    return infinity;
  }
  ++result_.rejected_evaluations;
  return infinity;
}

double Run::evaluate_at(const Vector& z, Vector& g) {
  const Vector theta = box_.to_theta(z);
  Vector gradient = Vector::Zero(z.size());
  g.setZero();
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

double Run::evaluate(const double* u_data, double* g_data, int n) {
  const Eigen::Map<const Vector> u(u_data, n);
  Eigen::Map<Vector> g(g_data, n);
  g.setZero();
  if (exception_) return infinity;  // lets the line search run out
  if (first_ && u.isZero(0)) {
    g = first_->second;
    return first_->first;
  }
  Vector slope = Vector::Zero(n);
  const double value = evaluate_at(to_z(u), slope);
  if (axes_.size() > 0)
    g = axes_.transpose() * slope;
  else
    g = slope;
  return value;
}

void Run::scale(const Vector& z) {
  const Index n = z.size();
  if (options_.hessian.rows() != n || options_.hessian.cols() != n)
    throw DimensionMismatch("lbfgs: size of the hessian", options_.hessian.size(),
                            "parameters squared", n * n);
  if (!options_.hessian.allFinite())
    throw InvalidArgument("lbfgs: the hessian has a value that is not finite");
  Vector g = Vector::Zero(n);
  const double value = evaluate_at(z, g);
  if (value == infinity) return;
  const Vector slope = box_.slope(z);
  Matrix h = slope.asDiagonal() * (0.5 * (options_.hessian + options_.hessian.transpose())) *
             slope.asDiagonal();
  h.diagonal() += box_.second_derivative(z).cwiseProduct(result_.gradient);
  const auto axes = positive_axes(h, g, kLongestStep);
  const Vector unit = axes.curvature.cwiseSqrt().cwiseInverse();
  const double length = unit.cwiseProduct(axes.slope).norm();
  if (!(length > 0)) return;
  origin_ = z;
  axes_ = length * axes.directions * unit.asDiagonal();
  steepness_ = length * length;
  first_.emplace(value, axes_.transpose() * g);
}

double Run::expected_gain(double gradient_norm) const {
  return 0.5 * gradient_norm * gradient_norm / steepness_;
}

int Run::progress(double value, double gradient_norm) {
  if (exception_) return exception_waits;
  ++result_.iterations;
  const Eigen::Vector2d row(value, gradient_norm);
  result_.history.append(row);
  try {
    if (observer_ && observer_({.number = result_.iterations,
                                .value = value,
                                .target = 0,
                                .seconds = timer_.seconds()}) == Action::stop)
      return observer_said_stop;
  } catch (...) {
    exception_ = std::current_exception();
    return exception_waits;
  }
  if (axes_.size() > 0 && expected_gain(gradient_norm) <= options_.gain_tolerance)
    return nothing_to_gain;
  // The library has such a test too, but divides by f without its absolute value.
  const Index last = result_.history.rows() - 1, before = last - options_.value_window;
  if (before < 0) return go_on;
  const double gained = result_.history(before, 0) - value;
  return gained <= options_.value_tolerance * std::max(1.0, std::abs(value)) ? value_is_flat
                                                                             : go_on;
}

int Run::attempt(double* z, int n) {
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.m = options_.memory;
  parameters.epsilon =
      axes_.size() > 0 ? std::numeric_limits<double>::min() : options_.gradient_tolerance;
  parameters.max_iterations = options_.max_iterations - result_.iterations;
  parameters.linesearch = LBFGS_LINESEARCH_BACKTRACKING_STRONG_WOLFE;
  parameters.max_linesearch = 40;
  double value = 0;
  return ::lbfgs(n, z, &value, evaluate_hook, progress_hook, this, &parameters);
}

void Run::conclude(int code) {
  const auto end = [&](StopReason stop, std::string message) {
    result_.stop = stop;
    result_.message = std::move(message);
  };
  if (!std::isfinite(result_.value)) {
    end(StopReason::breakdown,
        fmt::format("the objective cannot be evaluated at the start: {}", rejection_));
  } else if (code == LBFGS_SUCCESS || code == LBFGS_ALREADY_MINIMIZED) {
    end(StopReason::converged, "the gradient is below its tolerance");
  } else if (code == nothing_to_gain) {
    end(StopReason::converged, "another step would gain less than its tolerance");
  } else if (code == value_is_flat) {
    end(StopReason::converged,
        fmt::format("the last {} iterations gained nothing to speak of", options_.value_window));
  } else if (code == observer_said_stop) {
    end(StopReason::interrupted, "stopped by request");
  } else if (code == LBFGSERR_MAXIMUMITERATION) {
    end(StopReason::iteration_limit, "the iteration limit was reached");
  } else {
    end(StopReason::stagnation,
        rejection_.empty() ? "no step along the search direction improves the objective"
                           : "no step improves the objective; the last rejection: " + rejection_);
  }
}

MinimizeResult Run::minimise(ConstVectorView start) {
  const auto n = static_cast<int>(start.size());
  const Vector inside = box_.inside(start);
  result_.start_moved = (inside.array() != start.array()).any();
  result_.theta = inside;
  result_.value = infinity;
  result_.gradient = Vector::Zero(n);

  const std::unique_ptr<double, void (*)(double*)> z(lbfgs_malloc(n), lbfgs_free);
  if (!z) throw std::bad_alloc();
  Eigen::Map<Vector> u(z.get(), n);
  u = box_.to_z(inside);
  if (options_.hessian.size() > 0) scale(u);
  if (exception_) std::rethrow_exception(exception_);
  if (axes_.size() > 0) u.setZero();

  int code = 0;
  const bool done = first_ && expected_gain(first_->second.norm()) <= options_.gain_tolerance;
  if (done) code = nothing_to_gain;
  while (!done) {
    const int iterations_before = result_.iterations;
    const double value_before = result_.value;
    code = attempt(z.get(), n);
    if (exception_) std::rethrow_exception(exception_);
    // A failed line search after some progress: once more from here, with an empty memory.
    const bool search_failed = code < 0 && code != LBFGSERR_MAXIMUMITERATION;
    const bool gained = value_before == infinity ||
                        value_before - result_.value >
                            options_.value_tolerance * std::max(1.0, std::abs(result_.value));
    if (!search_failed || result_.iterations == iterations_before || !gained ||
        result_.iterations >= options_.max_iterations)
      break;
    ++result_.restarts;
  }
  conclude(code);
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
