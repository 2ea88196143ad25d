// Limited-memory BFGS: minimises any smooth function with a gradient, inside a box.
//   Source: Liu & Nocedal (1989), with the line search of line_search.hpp (strong Wolfe
//           conditions, cubic interpolation), which bears values that are not finite.
//   Cost:   one evaluation per trial step (1.1 to 1.2 per iteration); 2 memory n doubles.
//   When not: noisy gradients (fresh probes at each step): use a stochastic method.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/history.hpp"
#include "mercer/core/options.hpp"
#include "mercer/optim/box.hpp"
#include "mercer/optim/objective.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

struct LbfgsOptions {
  int max_iterations = 200;
  double gradient_tolerance = 1e-5;  // stop when |g| <= gradient_tolerance max(1, |z|)
  /// ... or when the last `value_window` iterations together gained less than this part of
  /// max(1, |f|).
  double value_tolerance = 1e-9;
  int value_window = 5;
  int memory = 10;
  /// ... or when 1/2 g'H^-1 g, what a step may still gain by the quasi-Newton model, is at most
  /// this; without a `hessian` the last three steps must have gained no more together.
  double gain_tolerance = 0;
  /// What is known of the Hessian at the start, in theta; it may be indefinite. The search then
  /// begins with a step of Newton's method instead of one of length 1, and gradient_tolerance is
  /// not looked at.
  Matrix hessian;
  /// Of the given Hessian: curvatures below count as this much. A Hessian of another place may be
  /// flat where the function is not, and steps along such an axis would be far too long.
  double least_curvature = 0;
  /// The first trial of a step moves no variable further than this: a model that is flat along a
  /// variable asks for far too much. Without a Hessian the very first step has length 1 all the
  /// same. 0: no limit.
  double longest_step = 0;
};

template <class Visitor>
void visit_fields(LbfgsOptions& o, Visitor&& field) {
  field("max_iterations", o.max_iterations, Positive{});
  field("gradient_tolerance", o.gradient_tolerance, Positive{});
  field("value_tolerance", o.value_tolerance, NonNegative{});
  field("value_window", o.value_window, Positive{});
  field("memory", o.memory, Positive{});
  field("gain_tolerance", o.gain_tolerance, NonNegative{});
  field("least_curvature", o.least_curvature, NonNegative{});
  field("longest_step", o.longest_step, NonNegative{});
}

struct MinimizeResult {
  Vector theta;  // the best point evaluated
  double value = 0;
  Vector gradient;  // in theta
  StopReason stop = StopReason::iteration_limit;
  std::string message;  // why it stopped, as a sentence
  int iterations = 0;
  int evaluations = 0;
  int rejected_evaluations = 0;  // not finite, or not positive definite
  int restarts = 0;              // memory thrown away after a failed line search
  bool start_moved = false;      // the start was on or outside a bound, and was moved inside
  std::vector<int> bounds_hit;   // -1 at the lower bound, +1 at the upper, 0 inside
  History history{2};            // value and |gradient| (in z), one row per iteration
  double seconds = 0;

  bool converged() const { return stop == StopReason::converged; }
};

/// Starts from theta. The observer sees the value once per iteration.
MinimizeResult lbfgs(const Objective& f, ConstVectorView theta, const Box& box = {},
                     const LbfgsOptions& options = {}, const Observer& observer = {});

}  // namespace mercer::optim
MERCER_API_END
