// The part of a plan that is about approximations: what each would cost, and the plan of a fit by
// one of them.
#pragma once

#include "mercer/planning/approximation_options.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::planning {

/// A row for every approximation that this problem may have, with the word "approximate"; none is
/// chosen.
void list_approximations(const inference::Problem& problem, const inference::Observations& rows,
                         const TrainOptions& train, Plan& plan);

/// The plan of a fit by the approximation that was asked for. `noise` as in plan_fit. Throws
/// DoesNotFit, InvalidArgument when the method cannot do what is asked.
void plan_approximation(const inference::Problem& problem, double noise,
                        const inference::Observations& rows, const MethodOptions& method,
                        const TrainOptions& train, const ApproximationOptions& approximation,
                        Plan& plan);

/// The same where these rows are a sample of those of a file, which is read in passes.
void plan_stream(const inference::Problem& problem, double noise,
                 const inference::Observations& sample, const MethodOptions& method,
                 const TrainOptions& train, const ApproximationOptions& approximation,
                 const StreamSetting& stream, Plan& plan);

}  // namespace mercer::planning
