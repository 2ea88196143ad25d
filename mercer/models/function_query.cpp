#include "mercer/models/function_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/laplace/coupled_query.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Rows at a time where no solve sets the width.
constexpr Index kRows = 1024;
// A variance is known to this share of the (mean) noise variance or better.
constexpr double kVarianceShare = 1e-3;
// Rows whose variances are refined together.
constexpr Index kRefinedRows = 64;

MethodOptions prediction_method(const KernelMachine& model, const PredictOptions& options) {
  MethodOptions method = model.method;
  method.memory = options.memory;
  method.solver = options.solver;
  // A small limit of the fit says nothing about the variances, and what was chosen for an
  // iterative fit does not bind a direct prediction.
  method.max_iterations = std::max(method.max_iterations, MethodOptions{}.max_iterations);
  if (inference::is_cholesky(options.solver)) {
    method.op = method.precision = method.preconditioner = "auto";
    method.preconditioning = {};
  }
  return method;
}

// The draws of different functions must not be drawn alike.
std::uint64_t draw_seed(std::uint64_t seed, Index function) {
  return function == 0 ? seed
                       : Rng(seed, "function", static_cast<std::uint64_t>(function)).bits64();
}

}  // namespace

FunctionQuery::FunctionQuery(const KernelMachine& model, Index function,
                             const PredictOptions& options)
    : model_(model),
      function_(model.function(function)),
      number_(function),
      options_(options),
      noise_(model.noise(function)),
      bound_(model.problem.kernel, function_.weights,
             {model.certificate.residual(function), model.certificate.trend_defect}, model.x),
      rounding_(model.problem.kernel, noise_, model.x) {
  if (options_.variance.method == "none" && options_.variance.joint_samples == 0) return;
  plan_ =
      planning::make_plan(model.problem.kernel, noise_.harmonic_mean(), model.x,
                          prediction_method(model, options_), PlanFor::predict, options_.variance);
  if (plan_.solves)
    system_.emplace(model.problem.kernel, noise_, model.x, loose_choice(plan_.system));
  if (plan_.variance == "vecchia")
    local_.emplace(model.problem.kernel, model.x, noise_.vector(model.x.rows()),
                   options_.variance.neighbours_or_default());
}

// Solves that only check others begin in single precision where the plan says mixed: rows are done
// at different iterations, and a product in double to confirm each of them was a third of the time
// (protein, 20,000 rows). The residual is measured in double in any case, at the end.
inference::SystemChoice FunctionQuery::loose_choice(inference::SystemChoice planned) const {
  const bool only_checks = approximate() && options_.variance.draws_needed() == 0;
  if (only_checks && planned.precision == inference::SolvePrecision::mixed &&
      model_.method.precision == "auto")
    planned.precision = inference::SolvePrecision::float32;
  return planned;
}

Index FunctionQuery::block_rows() const {
  return plan_.variance == "exact" ? plan_.variance_block : kRows;
}

// k*'H^-1 k* = |L^-1 k*|^2.
FunctionQuery::Explained FunctionQuery::explained_directly(ConstMatrixView cross,
                                                           ConstVectorView prior) const {
  Matrix v = cross;
  system_->factor()->solve_lower_in_place(v);
  Explained out;
  out.value.resize(v.cols());
  linalg::column_dots(v, v, {out.value.data(), static_cast<std::size_t>(v.cols())});
  out.truncated = Vector::Zero(v.cols());
  out.rounded = rounding_.direct(prior, out.value);
  if (out.rounded.maxCoeff() > kVarianceShare * noise_.harmonic_mean())
    for (Index first = 0; first < v.cols(); first += kRefinedRows)
      refine(cross, prior, first, std::min(kRefinedRows, v.cols() - first), out);
  return out;
}

// Rounding of a factor counts by 1 / min D: with little noise it would leave nothing of a variance.
// With r = k* - H u in double it enters in second order only; one product with K.
void FunctionQuery::refine(ConstMatrixView cross, ConstVectorView prior, Index first, Index rows,
                           Explained& out) const {
  const ConstMatrixView some = cross.middleCols(first, rows);
  Matrix u = some;
  system_->factor()->solve_in_place(u);
  const Matrix r = inference::true_residual(model_.problem.kernel, noise_, model_.x, some, u);
  const auto refined = second_order(some, prior.segment(first, rows), u, r);
  for (Index i = 0; i < rows; ++i) {
    if (!(refined.truncated(i) + refined.rounded(i) < out.rounded(first + i))) continue;
    out.value(first + i) = refined.value(i);
    out.truncated(first + i) = refined.truncated(i);
    out.rounded(first + i) = refined.rounded(i);
  }
}

// By default, from r'D^-1 r <= |r|^2 / min D.
double FunctionQuery::tolerance_for(ConstMatrixView b) const {
  const double largest = b.colwise().norm().maxCoeff();
  const double allowed =
      std::sqrt(kVarianceShare * system_->noise().least() * system_->noise().harmonic_mean());
  return options_.tolerance.value_or(std::clamp(allowed / std::max(largest, 1e-300), 1e-10, 1e-2));
}

Matrix FunctionQuery::solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
                            const Observer& observer) const {
  const double tolerance = tolerance_for(b);
  Matrix r;
  const auto report = system_->solve(b, u, tolerance, observer, &r);
  matvecs += report.matvecs;
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the {} not found to tolerance {:.1e}: {} after {} iterations, relative residual {:.1e}; "
        "use `solver=cholesky`, a looser `tolerance`, or `variance=vecchia` or none",
        plan_.variance == "exact" ? "variances were" : "draws were", tolerance,
        to_string(report.stop), count_text(report.iterations), report.relative_residual));
  return r;
}

// For u with residual r = k* - H u:  k*'H^-1 k* = k*'u + u'r + r'H^-1 r, and the last term lies in
// [0, r'D^-1 r]: leaving it out overstates the variance by no more than that.
FunctionQuery::Explained FunctionQuery::second_order(ConstMatrixView cross, ConstVectorView prior,
                                                     ConstMatrixView u, ConstMatrixView r) const {
  Explained explained{Vector(cross.cols()), system_->noise().inverse_squares(r),
                      rounding_.iterative(prior, u)};
  Vector correction(cross.cols());
  const auto count = static_cast<std::size_t>(cross.cols());
  linalg::column_dots(cross, u, {explained.value.data(), count});
  linalg::column_dots(u, r, {correction.data(), count});
  explained.value += correction;
  return explained;
}

FunctionQuery::Explained FunctionQuery::explained_by_solves(ConstMatrixView cross,
                                                            ConstVectorView prior,
                                                            std::int64_t& matvecs,
                                                            const Observer& observer) const {
  Matrix u = Matrix::Zero(cross.rows(), cross.cols());
  const Matrix r = solve(cross, u, matvecs, observer);
  return second_order(cross, prior, u, r);
}

// q'M^-1 q with q = a* - A'H^-1 k*.
Vector FunctionQuery::trend_variance(const QueryBlock& block) const {
  if (block.basis.cols() == 0) return Vector::Zero(block.x.rows());
  Matrix q(block.x.rows(), block.basis.cols());
  operators::cross_apply(model_.problem.kernel, block.x, model_.x, function_.weights.basis_solves,
                         operators::Precision::float64, q);
  q = block.basis - q;
  return (q.array() * (q * function_.weights.beta_covariance).array()).rowwise().sum();
}

Moments FunctionQuery::exact_variances(const QueryBlock& block, const Observer& observer) const {
  const Vector& prior = block.prior;
  Moments out;
  Matrix cross(model_.x.rows(), block.x.rows());
  operators::cross_matrix(model_.problem.kernel, model_.x, block.x, cross);
  Explained explained = system_->factor() != nullptr
                            ? explained_directly(cross, prior)
                            : explained_by_solves(cross, prior, out.matvecs, observer);
  const Vector trend = trend_variance(block);
  Vector variance = prior - explained.value + trend;
  const double jitter = model_.certificate.jitter;
  const double jitter_ratio = jitter > 0 ? jitter / (noise_.least() - jitter) : 0.0;
  double sd_error_bound = 0;
  out.error_bound = bound_(prior, block.basis);
  for (Index i = 0; i < variance.size(); ++i) {
    const double trend_error = inference::trend_variance_error(std::max(0.0, trend(i)), prior(i),
                                                               model_.certificate.trend_residual);
    // Laplace's bound is in the norm of K^-1, which knows nothing of the variance.
    if (model_.problem.gaussian())
      out.error_bound(i, 0) = std::min(
          out.error_bound(i, 0),
          bound_.where_known(prior(i),
                             (1 + jitter_ratio) * (std::max(0.0, explained.value(i)) +
                                                   explained.rounded(i) + explained.truncated(i)),
                             trend(i) + trend_error));
    explained.rounded(i) += trend_error;
    const double high = variance(i) + explained.rounded(i);
    // k*'H^-1 k* is at most jitter/min D times larger for H without its jitter.
    const double low = variance(i) - explained.rounded(i) - explained.truncated(i) -
                       jitter_ratio * std::max(0.0, explained.value(i));
    out.clamped += inference::raise_to_floor(variance(i), prior(i));
    const double sd = std::sqrt(variance(i));
    sd_error_bound = std::max(
        {sd_error_bound, sd - std::sqrt(std::max(0.0, low)), std::sqrt(std::max(0.0, high)) - sd});
  }
  out.variance = variance;
  out.sd_error_bound = sd_error_bound;
  return out;
}

inference::CheckedVariances FunctionQuery::check_variances(const QueryBlock& block,
                                                           ConstVectorView sd,
                                                           const Observer& observer) {
  Matrix cross(model_.x.rows(), block.x.rows());
  operators::cross_matrix(model_.problem.kernel, model_.x, block.x, cross);
  const Vector trend = trend_variance(block);
  inference::CheckedVariances out;
  const auto settle = [&](const Explained& explained) {
    out.variance = block.prior - explained.value + trend;
    for (Index i = 0; i < out.variance.rows(); ++i)
      inference::raise_to_floor(out.variance(i, 0), block.prior(i));
    out.truncated = explained.truncated;
    out.bound = explained.truncated + explained.rounded;
  };
  if (system_->factor() != nullptr) {
    settle(explained_directly(cross, block.prior));
    return out;
  }
  inference::CheckTolerance tolerance(tolerance_for(cross), options_.tolerance);
  Matrix u = Matrix::Zero(cross.rows(), cross.cols()), r;
  while (true) {
    const auto report = system_->solve(cross, u, tolerance.value(), observer, &r);
    out.matvecs += report.matvecs;
    out.iterations += report.iterations;
    if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
    const Matrix before = out.truncated;
    settle(second_order(cross, block.prior, u, r));
    if (report.energy_errors.size() == cross.cols())
      out.truncated = out.truncated.cwiseMin(report.energy_errors);
    // Rows that the last solve left as they were.
    if (before.size() > 0) out.truncated = out.truncated.cwiseMin(before);
    const bool converged = report.stop == StopReason::converged;
    if (!converged && system_->choice().precision != plan_.system.precision) {
      // Single precision does not suffice here: on from this u as planned.
      out.truncated.resize(0, 0);
      system_.emplace(model_.problem.kernel, noise_, model_.x, plan_.system);
      continue;
    }
    if (tolerance.suffices(sd, out.variance, out.truncated) || !converged) return out;
  }
}

// By neighbours, or from the deviations of draws from the mean, which is known: no degree of
// freedom is spent on it.
void FunctionQuery::approximate_variances(const QueryBlock& block, ConstMatrixView deviations,
                                          Moments& out) const {
  if (local_)
    out.variance = block.prior - local_->explained(block.x) + trend_variance(block);
  else
    out.variance = deviations.rowwise().squaredNorm() / static_cast<double>(deviations.cols());
  for (Index i = 0; i < out.variance.rows(); ++i)
    out.clamped += inference::raise_to_floor(out.variance(i, 0), block.prior(i));
  out.sd_error_bound.reset();
}

const inference::PathwiseDraws& FunctionQuery::make_draws(std::int64_t& matvecs,
                                                          const Observer& observer) {
  if (draws_) return *draws_;
  const inference::PathwiseOptions wanted{.count = options_.variance.draws_needed(),
                                          .seed = draw_seed(model_.method.seed, number_)};
  const auto solve_blocks = [&](ConstMatrixView b, MatrixView u) {
    for (Index first = 0; first < b.cols(); first += plan_.variance_block) {
      const Index columns = std::min(plan_.variance_block, b.cols() - first);
      solve(b.middleCols(first, columns), u.middleCols(first, columns), matvecs, observer);
    }
  };
  const Vector noise = system_->noise().vector(model_.x.rows());
  return draws_.emplace(model_.problem, model_.x, noise, function_.weights, wanted, solve_blocks);
}

Moments FunctionQuery::moments(const QueryBlock& block, const Observer& observer) {
  const auto& weights = function_.weights;
  Vector mean(block.x.rows());
  operators::cross_apply(model_.problem.kernel, block.x, model_.x, weights.w,
                         operators::Precision::float64, mean);
  if (block.basis.cols() > 0) mean += block.basis * weights.beta;
  Matrix deviations(block.x.rows(), 0);
  std::int64_t matvecs = 0;
  if (options_.variance.draws_needed() > 0)
    deviations = make_draws(matvecs, observer).deviations(block.x);
  Moments out;
  if (plan_.variance == "exact")
    out = exact_variances(block, observer);
  else if (with_variance())
    approximate_variances(block, deviations, out);
  out.mean = mean;
  if (function_.offset != 0) out.mean.array() += function_.offset;
  if (plan_.variance != "exact") out.error_bound = bound_(block.prior, block.basis);
  out.deviations = deviations.leftCols(options_.variance.joint_samples);
  out.matvecs += matvecs;
  return out;
}

IndependentQuery::IndependentQuery(const KernelMachine& model, const PredictOptions& options)
    : model_(model), options_(options) {
  functions_.resize(model.functions.size());
  auto first = std::make_unique<FunctionQuery>(model, 0, options_);
  plan_ = first->plan();
  const auto count = static_cast<double>(model.num_functions());
  keeps_all_ = count == 1 || plan_.base_bytes + count * (plan_.peak_bytes - plan_.base_bytes) <=
                                 plan_.budget_bytes;
  if (!keeps_all_) return;
  functions_[0] = std::move(first);
  for (Index c = 1; c < model.num_functions(); ++c) function(c);
}

FunctionQuery& IndependentQuery::function(Index c) {
  auto& slot = functions_[static_cast<std::size_t>(c)];
  if (slot) return *slot;
  if (!keeps_all_)
    for (auto& other : functions_) other.reset();
  slot = std::make_unique<FunctionQuery>(model_, c, options_);
  return *slot;
}

Moments IndependentQuery::moments(const QueryBlock& block,
                                  const inference::QueryProgress& progress) {
  const Index m = block.x.rows(), count = model_.num_functions();
  const Index draws = options_.variance.joint_samples;
  Moments out;
  out.mean.resize(m, count);
  out.error_bound.resize(m, count);
  out.deviations.resize(m, count * draws);
  if (plan_.variance != "none") out.variance.resize(m, count);
  if (plan_.variance != "none" && plan_.variance != "exact") out.sd_error_bound.reset();
  for (Index c = 0; c < count; ++c) {
    auto& f = function(c);
    for (Index first = 0; first < m; first += f.block_rows()) {
      const Index rows = std::min(f.block_rows(), m - first);
      const double done =
          (static_cast<double>(c) + static_cast<double>(first) / static_cast<double>(m)) /
          static_cast<double>(count);
      const auto observer = [&](const Iteration&) {
        return progress ? progress(done) : Action::proceed;
      };
      if (observer({}) == Action::stop) throw Interrupted("interrupted while predicting");
      const auto some = f.moments(block.rows(first, rows), observer);
      out.mean.col(c).segment(first, rows) = some.mean;
      out.error_bound.col(c).segment(first, rows) = some.error_bound;
      out.deviations.block(first, c * draws, rows, draws) = some.deviations;
      if (out.variance.cols() > 0) out.variance.col(c).segment(first, rows) = some.variance;
      if (out.sd_error_bound && some.sd_error_bound)
        out.sd_error_bound = std::max(*out.sd_error_bound, *some.sd_error_bound);
      else
        out.sd_error_bound.reset();
      out.clamped += some.clamped;
      out.matvecs += some.matvecs;
    }
  }
  return out;
}

inference::CheckedVariances IndependentQuery::check_variances(
    const QueryBlock& block, ConstMatrixView sd, const inference::QueryProgress& progress) {
  const Index m = block.x.rows(), count = model_.num_functions();
  const auto observer = [&](const Iteration&) { return progress ? progress(-1) : Action::proceed; };
  inference::CheckedVariances out{Matrix(m, count), Matrix(m, count), Matrix(m, count)};
  for (Index c = 0; c < count; ++c) {
    auto& f = function(c);
    const Index step = f.plan().variance_block;
    for (Index first = 0; first < m; first += step) {
      const Index rows = std::min(step, m - first);
      out.put(first, c,
              f.check_variances(block.rows(first, rows), sd.col(c).segment(first, rows), observer));
    }
  }
  return out;
}

namespace {

// Rows of an approximate prediction that the memory of its plan is for.
constexpr Index kApproximateBlock = 1000;

// W^-1 of all functions and rows.
double mean_noise(const KernelMachine& model) {
  double curvature = 0;
  for (const auto& f : model.functions) curvature += f.curvature.mean();
  return static_cast<double>(model.num_functions()) / std::max(curvature, 1e-300);
}

inference::CoupledPosterior coupled_posterior(const KernelMachine& model) {
  const Index n = model.x.rows(), count = model.num_functions();
  inference::CoupledPosterior out{model.problem,    model.x,       Matrix(n, count),
                                  Matrix(n, count), Vector(count), Vector(count)};
  for (Index c = 0; c < count; ++c) {
    const auto& f = model.function(c);
    out.a.col(c) = f.weights.w;
    out.w.col(c) = f.curvature;
    out.offset(c) = f.offset;
    const inference::ErrorBound bound(
        model.problem.kernel, f.weights,
        {model.certificate.residual(c), model.certificate.trend_defect}, model.x);
    out.bound_per_prior_sd(c) = bound(Vector::Ones(1), Matrix(1, 0))(0);
  }
  return out;
}

PlannedQuery coupled_query(const KernelMachine& model, const PredictOptions& options) {
  const auto& variance = options.variance;
  Plan plan;
  if (variance.method != "none" || variance.joint_samples > 0)
    plan = planning::plan_coupled_query(model.problem, mean_noise(model), model.x,
                                        model.num_functions(), prediction_method(model, options),
                                        variance);
  inference::CoupledQueryOptions wanted;
  wanted.variance = plan.variance == "exact"     ? inference::CoupledVariance::exact
                    : plan.variance == "samples" ? inference::CoupledVariance::samples
                                                 : inference::CoupledVariance::none;
  wanted.system = plan.system;
  wanted.block_rows = plan.variance_block;
  wanted.draws = variance.draws;
  wanted.joint_samples = variance.joint_samples;
  wanted.tolerance = options.tolerance;
  wanted.seed = model.method.seed;
  return {std::make_unique<inference::CoupledQuery>(coupled_posterior(model), std::move(wanted)),
          std::move(plan)};
}

// An approximation finds means and variances in one way, from its own factors.
PlannedQuery approximate_query(const KernelMachine& model, const PredictOptions& options) {
  const auto& variance = options.variance;
  const auto& name = model.sparse->method;
  if (variance.method != "auto" && variance.method != "none")
    throw InvalidArgument(fmt::format(
        "`variance={}` is of the exact posterior; this model is {}, an approximation that has its "
        "own variances: leave `variance` out, or give none",
        variance.method, name));
  if (options.solver != "auto" || options.tolerance)
    throw InvalidArgument(
        fmt::format("this model is {}, an approximation whose predictions solve no system; leave "
                    "`solver` and `tolerance` out",
                    name));
  if (variance.neighbours || variance.check_rows.value_or(0) > 0)
    throw InvalidArgument(
        fmt::format("this model is {}, an approximation that has its own variances: `neighbours` "
                    "and `check_rows` are of those of the exact posterior; leave them out (the "
                    "`check_rows` of a fit measure its distance from the exact one)",
                    name));
  if (variance.joint_samples > 0)
    if (const auto why = inference::sparse_draws_refusal(model.problem, *model.sparse);
        !why.empty())
      throw InvalidArgument(why);
  Plan plan;
  plan.n = model.num_rows();
  plan.d = model.x.cols();
  plan.inference = name;
  plan.approximate = true;
  plan.solves = false;
  plan.variance = variance.method == "none" ? "none" : name;
  plan.base_bytes = planning::base_bytes(model.x.rows(), model.x.cols());
  const auto cost = inference::sparse_query_cost(*model.sparse, kApproximateBlock);
  plan.peak_bytes = plan.base_bytes + cost.bytes;
  plan.budget_bytes = planning::memory_budget(prediction_method(model, options), plan.base_bytes);
  if (plan.peak_bytes > plan.budget_bytes)
    throw DoesNotFit(fmt::format("predicting needs {}, more than the {} there are",
                                 format_bytes(plan.peak_bytes), format_bytes(plan.budget_bytes)));
  return {inference::sparse_query(model.problem, *model.sparse,
                                  {.variance = variance.method != "none",
                                   .draws = variance.joint_samples,
                                   .seed = model.method.seed}),
          std::move(plan)};
}

}  // namespace

PlannedQuery make_query(const KernelMachine& model, const PredictOptions& options) {
  if (model.sparse) return approximate_query(model, options);
  if (model.coupled()) return coupled_query(model, options);
  auto query = std::make_unique<IndependentQuery>(model, options);
  Plan plan = query->plan();
  return {std::move(query), std::move(plan)};
}

}  // namespace mercer::models
