// The part of a plan that is about variances: exact ones, one solve a row, while that is
// affordable; else, or when asked for, by neighbours or by draws, with a few solves to measure the
// error.
#pragma once

#include <functional>

#include "mercer/planning/system_plan.hpp"

namespace mercer::planning {

/// Adds to a plan how the system is solved for the variances of so many rows and for so many draws;
/// returns the seconds of that on a typical machine.
struct VarianceSolves {
  double rows = 0, draws = 0;
  bool loose = false;  // only to check others by
};
using PlanSystem = std::function<double(const VarianceSolves& solves, Plan& plan)>;

/// A run of predictions with approximate variances, for the budget of their check.
struct CheckedRun {
  const kernels::Kernel& kernel;
  Index n = 0, d = 0;  // training points
  inference::FunctionCount functions = 1;
  const VarianceOptions& options;
  const Plan& plan;
  Index rows = 0;            // predicted
  std::int64_t matvecs = 0;  // of the predictions: those of draws
};

/// Rows to check besides the first `checked`, which took so many iterations (of all functions): as
/// many as keep the check within a quarter of the run, and all that are asked for when the user
/// said how many, or when a factor makes them cheap. Counted in kernel values and products at
/// nominal speeds, so that the rows do not depend on the clock.
Index further_checks(const CheckedRun& run, Index checked, int iterations);

/// Throws InvalidArgument when the kernel has no draws, DoesNotFit.
void plan_variances(const System& system, const VarianceOptions& options, Plan& plan,
                    const PlanSystem& plan_system);

}  // namespace mercer::planning
