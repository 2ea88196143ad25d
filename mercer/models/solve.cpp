#include "mercer/models/solve.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/error_estimate.hpp"
#include "mercer/inference/exact/accurate_solve.hpp"
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
  auto solved = inference::solve_system(problem, rows, Matrix(rows.size(), 0), out.plan.system,
                                        options.method.accuracy, progress);
  out.report = std::move(solved.report);
  out.solution = solved.solution.col(0);
  out.jitter = solved.jitter;
  out.preconditioner = std::move(solved.preconditioner);
  out.build_seconds = solved.build_seconds;
  // In target units, for the noise as given; at its largest over the points.
  const inference::Weights weights{out.solution, {}, {}, {}};
  const double energy =
      solved.energy + inference::residual_rounding(problem.kernel, rows.noise.at(problem.noise()),
                                                   rows.x, out.solution);
  const Vector prior = problem.kernel.diagonal(rows.x);
  const inference::ErrorBound bounds(problem.kernel, weights, {energy, 0}, rows.x);
  const double bound = bounds(prior, Matrix(prior.size(), 0)).maxCoeff();
  const double estimate = inference::error_estimate(problem, rows.x, out.solution,
                                                    {solved.missing, {}}, options.method.seed);
  out.mean_error_bound = scaling.unscale_width(bound);
  out.mean_error_estimate = scaling.unscale_width(std::min(estimate, bound));
  out.accuracy = options.method.accuracy;
  out.accuracy_missed = solved.missed;
  if (out.accuracy_missed.empty() && options.method.accuracy > 0 &&
      bound > options.method.accuracy * inference::target_sd(rows))
    out.accuracy_missed = "rounding of predictions allows no better";
  return out;
}

}  // namespace mercer::models
