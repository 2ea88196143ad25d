// Minimises where only gradients can be had, and those with noise: Newton's steps with a Hessian
// known roughly at the start (of fewer rows, say) that every gradient corrects.
//   Source: Nocedal & Wright (2006), chapter 6 (BFGS); a step is judged by the trapezoidal
//           rule, as there are no values to search along a line with.
//   Cost:   a gradient a step, usually two to four in all.
//   When not: no idea of the Hessian: take a stochastic method, which needs ten times the
//   gradients.
// It ends when 1/2 g'H^-1 g, what a step may still gain, is small along all directions in which the
// slope is not far below its standard error.
#pragma once

#include "mercer/optim/stochastic.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

struct QuasiNewtonOptions {
  int steps = 20;
  double gain_tolerance = 0;
  double longest_step = 1;  // in any parameter
};

template <class Visitor>
void visit_fields(QuasiNewtonOptions& o, Visitor&& field) {
  field("steps", o.steps, Positive{});
  field("gain_tolerance", o.gain_tolerance, NonNegative{});
  field("longest_step", o.longest_step, Positive{});
}

/// After every gradient.
struct QuasiNewtonStep {
  int number = 0;    // from 1
  Vector theta;      // where it was taken
  double gain = 0;   // expected of the next step
  double noise = 0;  // of that, what the gradient's noise alone would show; 0 when not known
  bool accepted = true;
};

struct QuasiNewtonResult {
  Vector theta;
  StopReason stop = StopReason::iteration_limit;
  int steps = 0;
  double gain = 0, noise = 0;
  Vector step;     // that would follow at theta
  Matrix hessian;  // as the gradients have corrected it
};

/// `hessian` may be indefinite: where it is not positive, steps are short.
QuasiNewtonResult quasi_newton(const NoisyObjective& f, ConstVectorView start,
                               ConstMatrixView hessian, const Box& box,
                               const QuasiNewtonOptions& options,
                               const std::function<Action(const QuasiNewtonStep&)>& observer = {});

}  // namespace mercer::optim
MERCER_API_END
