#include "mercer/models/regression.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/certificate.hpp"
#include "mercer/models/likelihood_value.hpp"
#include "mercer/models/merging.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/training.hpp"
#include "mercer/models/version.hpp"

namespace mercer::models {
namespace {

// Says how far a solve is: residuals fall roughly geometrically, so progress is counted in digits.
Observer solve_observer(const ProgressCallback& progress) {
  if (!progress) return {};
  return [progress, first = 0.0](const Iteration& it) mutable {
    if (first <= 0) first = std::max(it.value, it.target);
    double fraction = -1;
    if (it.target > 0 && it.value > 0 && first > it.target)
      fraction = std::clamp(std::log(first / it.value) / std::log(first / it.target), 0.0, 1.0);
    return progress({"solve", fraction,
                     fmt::format("iteration {}, relative residual {:.1e}", it.number, it.value)});
  };
}

// What a checkpoint must have been made from to be resumed: data and everything that steers.
std::uint64_t run_identity(const data::Dataset& data, const FitOptions& options, const Plan& plan) {
  const auto& m = options.method;
  const auto& t = options.train;
  const std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", version(), data.fingerprint,
                  m.kernel, fmt::join(m.lengthscale, ","), m.signal_variance.value_or(-1),
                  m.noise.value_or(-1), m.mean, m.seed, t.train, t.steps_or_default(), t.restarts,
                  t.subset.value_or(-1), options.standardize, options.merge, plan.train_rows,
                  plan.start_rows) +
      fmt::format("|{}|{}|{}|{}", plan.train_method, t.probes, t.probe_kind,
                  identity_of(plan.train_system));
  return fingerprint(text.data(), text.size());
}

nlohmann::json fit_record(const data::Dataset& data, const FitOptions& options,
                          const FitResult& result) {
  auto record = common_record(data, options, result);
  record["duplicate_inputs"] = data.duplicate_inputs;
  record["merged_rows"] = result.merged_rows;
  record["solver"] = result.plan.system.solver;
  record["preconditioner"] = result.plan.system.preconditioner;
  record["jitter"] = result.jitter;
  record["stop"] = std::string(to_string(result.solve.stop));
  record["likelihood_rows"] = result.likelihood.rows;
  return record;
}

struct SolvedSystem {
  inference::SystemReport report;  // of y
  Matrix solution;                 // H^-1 [y, basis]
  linalg::Diagonal noise;          // of H, jitter included
  double jitter = 0, build_seconds = 0;
  preconditioners::BuildReport preconditioner;
};

// The trend's columns are solved to this tolerance whatever the one for y: their error would
// enter the variances, whose bound does not count it.
constexpr double kBasisTolerance = 1e-10;

SolvedSystem solve_system(const inference::Problem& problem, const inference::Observations& data,
                          ConstMatrixView basis, const inference::SystemChoice& choice,
                          const ProgressCallback& progress) {
  if (progress && progress({"solve", -1, "building " + choice.solver}) == Action::stop)
    throw Interrupted("interrupted before the solve");
  const inference::RegularizedSystem system(problem.kernel, data.noise.at(problem.noise()), data.x,
                                            choice);
  SolvedSystem out;
  out.solution = Matrix::Zero(data.size(), 1 + basis.cols());
  const auto solve_columns = [&](ConstMatrixView b, MatrixView solution, double tolerance) {
    auto report = system.solve(b, solution, tolerance, solve_observer(progress));
    if (report.stop == StopReason::interrupted)
      throw Interrupted(
          fmt::format("interrupted after {} iterations of the solve", report.iterations));
    return report;
  };
  out.report = solve_columns(data.y, out.solution.leftCols(1), choice.tolerance);
  if (basis.cols() > 0) {
    const auto trend = solve_columns(basis, out.solution.rightCols(basis.cols()),
                                     std::min(choice.tolerance, kBasisTolerance));
    // 1e-10 may be out of reach; what the user asked for may not be.
    if (trend.relative_residual > choice.tolerance) out.report.stop = trend.stop;
    out.report.matvecs += trend.matvecs;
    out.report.seconds += trend.seconds;
  }
  out.noise = system.noise();
  out.jitter = system.jitter();
  out.build_seconds = system.build_seconds();
  out.preconditioner = system.preconditioner_report();
  return out;
}

// Weights and certificate of a solved system; without the points and what they were read from.
RegressionModel solved_model(const inference::Problem& problem, const inference::Observations& rows,
                             const data::Scaling& scaling, const SolvedSystem& solved) {
  RegressionModel model;
  model.scaling = scaling;
  model.problem = problem;
  model.noise = solved.noise;
  try {
    model.weights = inference::combine_solves(solved.solution, problem.basis(rows.x));
  } catch (const NotPositiveDefinite& error) {
    throw DataError(error.what());  // nearly dependent columns: the data's doing, not the noise's
  }
  model.certificate = certify(problem, solved.noise, model.weights, rows, scaling.target_sd);
  return model;
}

// Watching a run needs no more digits than a picture shows.
inference::SystemChoice watching_system(inference::SystemChoice choice) {
  choice.tolerance = std::max(choice.tolerance, 1e-3);
  return choice;
}

RegressionScores score(RegressionModel model, const Validation& validation) {
  PredictOptions options;
  options.variance.method = "vecchia";
  options.variance.check_rows = 0;
  const Predictor predictor(std::move(model), options);
  const auto predictions = predictor.predict(validation.inputs, {}, validation.noise);
  ScoreKeeper keeper;
  keeper.add(validation.target, predictions.mean, predictions.sd_obs);
  return keeper.scores();
}

void check_target(const data::Dataset& data) {
  const double low = data.target.minCoeff();
  const double high = data.target.maxCoeff();
  if (low == high)
    throw DataError(fmt::format(
        "the target '{}' has the same value {} in all {} rows to learn from; there is nothing to "
        "learn",
        data.schema.target, low, data.size()));
  // Variances are squares: with a margin for sums of them and for shares of them.
  constexpr double largest = 1e140;
  constexpr double smallest_range = 1e-140;
  if (std::max(std::abs(low), std::abs(high)) > largest || high - low < smallest_range)
    throw DataError(fmt::format(
        "the target '{}' runs from {} to {}, too {} for its variance to be a number in double "
        "precision; use other units",
        data.schema.target, low, high, high - low < smallest_range ? "narrow" : "large"));
}

// Readers check what they read; arrays come as they are.
void check_noise(const Vector& values, data::ColumnRole role, Index rows) {
  if (values.size() != 0 && values.size() != rows)
    throw DimensionMismatch(fmt::format("{}: values", to_string(role)), values.size(), "rows",
                            rows);
  for (Index i = 0; i < values.size(); ++i)
    if (const auto why = data::fault(role, values(i)); !why.empty())
      throw DataError(fmt::format("row {}: {}", i + 1, why));
}

double column_sd(ConstVectorView v) {
  const double mean = v.mean();
  return std::sqrt((v.array() - mean).square().mean());
}

}  // namespace

ScaledData scale(const data::Dataset& data, bool standardize) {
  check_target(data);
  ScaledData out;
  out.scaling = standardize ? data::fit_scaling(data.inputs, data.target)
                            : data::Scaling::identity(data.inputs.cols());
  out.data.x = data.inputs;
  out.data.y = data.target;
  out.scaling.scale_inputs(out.data.x);
  out.scaling.scale_target(out.data.y);
  check_noise(data.noise.variance, data::ColumnRole::noise, data.size());
  check_noise(data.noise.count, data::ColumnRole::count, data.size());
  out.data.noise = row_noise(data.noise, out.scaling);
  return out;
}

inference::RowNoise row_noise(const data::NoiseColumns& columns, const data::Scaling& scaling) {
  inference::RowNoise noise;
  if (columns.count.size() > 0) noise.share = columns.count.cwiseInverse();
  if (columns.variance.size() > 0) noise.known = columns.variance / std::pow(scaling.target_sd, 2);
  return noise;
}

inference::Problem start_problem(const MethodOptions& options, ConstMatrixView x,
                                 ConstVectorView y) {
  const Index d = x.cols();
  inference::Problem problem{kernels::Kernel::parse(options.kernel, d), 0.1,
                             inference::mean_kind(options.mean)};
  // On standardised data: v = 1, s2 = 0.1, l = sqrt(d), at which typical pairs are correlated.
  const double target_variance = std::max(std::pow(column_sd(y), 2), 1e-300);
  std::vector<double> spread(static_cast<std::size_t>(d));
  for (Index c = 0; c < d; ++c)
    spread[static_cast<std::size_t>(c)] =
        std::sqrt(static_cast<double>(d)) * std::max(column_sd(x.col(c)), 1e-150);
  problem.kernel.scale_start_values(target_variance, spread);
  problem.set_noise(options.noise.value_or(0.1 * target_variance));
  if (options.signal_variance) problem.kernel.set_all_variances(*options.signal_variance);
  if (!options.lengthscale.empty()) problem.kernel.set_lengthscales(options.lengthscale);
  return problem;
}

FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress, const Validation* validation) {
  check(options.method);
  check(options.train);
  const Timer timer;
  FitResult result;
  auto scaled = scale(data, options.standardize);
  const auto& scaling = scaled.scaling;
  auto& rows = scaled.data;
  auto problem = start_problem(options.method, rows.x, rows.y);
  problem.trend_left_out = inference::dependent_inputs(problem.mean, rows.x);
  if (options.method.solver == "kcg" && !rows.noise.at(1.0).uniform())
    throw InvalidArgument("--solver kcg needs the same noise in all rows; take another solver");
  // Last: scale, start values and trend are those of all rows, merged or not.
  // Merged rows have a noise of their own, which kcg cannot have.
  if (options.merge && options.method.solver != "kcg") rows = merge_replicates(std::move(rows));
  result.merged_rows = rows.replicates.merged_rows();
  result.plan = make_plan(problem.kernel, rows.noise.at(problem.noise()).harmonic_mean(), rows.x,
                          options.method, options.train, PlanFor::fit);

  if (result.plan.trains) {
    StepObserver on_step;
    if (validation != nullptr)
      on_step = [&](const inference::Problem& here, int step, double seconds) {
        auto model = solved_model(
            here, rows, scaling,
            solve_system(here, rows, here.basis(rows.x), watching_system(result.plan.system), {}));
        model.x = rows.x;
        model.method = options.method;
        validation->on_step({step, seconds, score(std::move(model), *validation)});
      };
    auto trained = train(problem, rows, result.plan, options.train, options.method.seed,
                         run_identity(data, options, result.plan), progress, on_step);
    problem = std::move(trained.problem);
    result.training = std::move(trained.report);
    result.likelihood = trained.likelihood;
  }

  auto solved = solve_system(problem, rows, problem.basis(rows.x), result.plan.system, progress);
  auto& model = result.model;
  model = solved_model(problem, rows, scaling, solved);
  result.solve = std::move(solved.report);
  result.jitter = solved.jitter;
  result.preconditioner = std::move(solved.preconditioner);
  result.build_seconds = solved.build_seconds;
  if (!result.likelihood.known && result.solve.stop != StopReason::converged &&
      result.plan.system.solver != "cholesky")
    result.likelihood.reason = "the solve did not converge";
  else if (!result.likelihood.known)
    result.likelihood =
        result.plan.system.solver == "cholesky"
            ? evaluate_likelihood(problem, rows)
            : estimate_likelihood(problem, rows, model.weights, options.method.seed, progress);
  model.schema = data.schema;
  model.x = std::move(rows.x);
  model.method = options.method;
  model.mean_only = options.mean_only;
  model.record = fit_record(data, options, result);
  result.seconds = timer.seconds();
  return result;
}

SolveOutcome solve(const data::Dataset& data, const FitOptions& options,
                   const ProgressCallback& progress) {
  check(options.method);
  if (options.method.mean != "zero")
    throw InvalidArgument("solve is one system H a = y without a mean; leave --mean out");
  const auto [scaling, rows] = scale(data, options.standardize);
  const auto problem = start_problem(options.method, rows.x, rows.y);
  SolveOutcome out;
  out.plan = make_plan(problem.kernel, rows.noise.at(problem.noise()).harmonic_mean(), rows.x,
                       options.method, options.train, PlanFor::solve);
  auto solved = solve_system(problem, rows, Matrix(rows.size(), 0), out.plan.system, progress);
  out.report = std::move(solved.report);
  out.solution = solved.solution.col(0);
  out.jitter = solved.jitter;
  out.preconditioner = std::move(solved.preconditioner);
  out.build_seconds = solved.build_seconds;
  // sqrt(k**) |D^-1/2 r| <= sqrt(k** / min D) |r|, at its largest over the points, in target units.
  const double prior = problem.kernel.diagonal(rows.x).maxCoeff();
  out.mean_error_bound = scaling.unscale_width(std::sqrt(prior / solved.noise.least()) *
                                               out.report.residual_norms.maxCoeff());
  return out;
}

}  // namespace mercer::models
