// The part of a plan that is about variances: exact ones, one solve a row, while that is
// affordable; else, or when asked for, by neighbours or by draws, with a few exact solves to
// measure the error.
#pragma once

#include <functional>

#include "mercer/planning/system_plan.hpp"

namespace mercer::planning {

/// Adds to a plan how the system is solved for the variances of so many rows and for so many draws;
/// returns the seconds of that on a typical machine.
using PlanSystem = std::function<double(double rows, double draws, Plan& plan)>;

/// Throws InvalidArgument when the kernel has no draws, DoesNotFit.
void plan_variances(const System& system, const VarianceOptions& options, Plan& plan,
                    const PlanSystem& plan_system);

}  // namespace mercer::planning
