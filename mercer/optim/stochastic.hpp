// Descent on gradients that carry noise: Adam and AdaGrad, with an honest end. A run stops when the
// mean gradient of the last steps is no larger than the error that the estimates state of
// themselves, not only at a number of steps.
//   Source: Kingma & Ba (2015); Duchi, Hazan & Singer (2011), with the step of Cutajar et al.
//           (2016), theta -= g / (sqrt(sum g^2) + 1e-6).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "mercer/core/history.hpp"
#include "mercer/core/options.hpp"
#include "mercer/optim/box.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

/// An estimate of a gradient and, where it is known, of the standard error of each entry.
struct NoisyGradient {
  Vector gradient;        // empty: the run is to stop here
  Vector standard_error;  // empty: not known
};
using NoisyObjective = std::function<NoisyGradient(ConstVectorView theta, int step)>;

enum class StepRule { adam, adagrad };

struct StochasticOptions {
  StepRule rule = StepRule::adam;
  int steps = 100;
  double rate = 0.1;        // adam: step in each parameter; adagrad: its first step
  double cooling = 0.3;     // adam: over this last part of the steps the rate falls to 0 (cosine)
  int window = 10;          // steps whose gradients are averaged for the test of the end
  double tolerance = 1e-4;  // gradients below this are zero, whatever their noise
};

template <class Visitor>
void visit_fields(StochasticOptions& o, Visitor&& field) {
  field("steps", o.steps, Positive{});
  field("rate", o.rate, Positive{});
  field("cooling", o.cooling, NonNegative{});
  field("window", o.window, Positive{});
  field("tolerance", o.tolerance, NonNegative{});
}

/// All that the next step depends on: write it to resume from.
struct StochasticState {
  int step = 0;
  bool converged = false;
  Vector theta;
  Vector first, second;           // running moments of the gradient
  std::vector<Vector> gradients;  // the last `window`, oldest first
  std::vector<Vector> thetas;     // where they were taken
};

struct StochasticResult {
  Vector theta;  // the mean of the last window, where its gradients are noise; else the last
  StopReason stop = StopReason::iteration_limit;
  int steps = 0;
};

/// Minimises. `after_step` sees the state after every step and may stop the run.
StochasticResult descend(const NoisyObjective& f, StochasticState start, const Box& box,
                         const StochasticOptions& options,
                         const std::function<Action(const StochasticState&)>& after_step = {});

}  // namespace mercer::optim
MERCER_API_END
