#include "mercer/models/solve.hpp"

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::models {

SolveOutcome solve(const data::Dataset& data, const FitOptions& options,
                   const ProgressCallback& callback) {
  const ObservedCall call(callback);
  const auto& progress = call.progress();
  check(options.method);
  if (options.method.mean != "zero")
    throw InvalidArgument("solve is one system H a = y without a mean; leave `mean` out");
  const auto [scaling, rows] = scale(data, options.standardize, options.method.isotropic);
  const auto problem = start_problem(options.method, data.schema, rows.x, rows.target());
  SolveOutcome out{.problem = problem, .scaling = scaling};
  out.plan = planning::make_plan(problem.kernel, rows.noise.at(problem.noise()).harmonic_mean(),
                                 rows.x, options.method, PlanFor::solve);
  auto solved = solve_system(problem, rows, Matrix(rows.size(), 0), out.plan.system, progress);
  out.report = std::move(solved.report);
  out.solution = solved.solution.col(0);
  out.jitter = solved.jitter;
  out.preconditioner = std::move(solved.preconditioner);
  out.build_seconds = solved.build_seconds;
  // sqrt(k**) |D^-1/2 r| <= sqrt(k** / min D) |r|, at its largest over the points, in target units.
  // r is the residual for the noise as given: jitter adds its product with the solution.
  const double prior = problem.kernel.diagonal(rows.x).maxCoeff();
  const double residual = out.report.residual_norms.maxCoeff() + out.jitter * out.solution.norm();
  out.mean_error_bound =
      scaling.unscale_width(std::sqrt(prior / rows.noise.at(problem.noise()).least()) * residual);
  return out;
}

}  // namespace mercer::models
