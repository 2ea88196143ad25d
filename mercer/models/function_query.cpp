#include "mercer/models/function_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Rows at a time where no solve sets the width.
constexpr Index kRows = 1024;

MethodOptions prediction_method(const KernelMachine& model, const PredictOptions& options) {
  MethodOptions method = model.method;
  method.memory = options.memory;
  method.solver = options.solver;
  // A small limit of the fit says nothing about the variances, and what was chosen for an
  // iterative fit does not bind a direct prediction.
  method.max_iterations = std::max(method.max_iterations, MethodOptions{}.max_iterations);
  if (options.solver == "cholesky") {
    method.op = method.precision = method.preconditioner = "auto";
    method.preconditioning = {};
  }
  return method;
}

/// Variances below this share of the prior variance are rounding, not knowledge; true when raised.
bool raise_to_floor(double& variance, double prior) {
  const double floor = 1e-12 * prior;
  if (!(variance < floor)) return false;
  variance = floor;
  return true;
}

// The draws of different functions must not be drawn alike.
std::uint64_t draw_seed(std::uint64_t seed, Index function) {
  return function == 0 ? seed
                       : Rng(seed, "function", static_cast<std::uint64_t>(function)).bits64();
}

}  // namespace

void check_range(const char* what, ConstMatrixView values, Index first) {
  for (Index i = 0; i < values.rows(); ++i)
    if (!values.row(i).allFinite())
      throw PredictionOverflow(
          first + i,
          fmt::format("{} overflows double precision: the inputs of this row lie too far "
                      "from the training data for this kernel; correct or remove the row",
                      what));
}

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
  if (plan_.solves) system_.emplace(model.problem.kernel, noise_, model.x, plan_.system);
  if (plan_.variance == "vecchia")
    local_.emplace(model.problem.kernel, model.x, noise_.vector(model.x.rows()),
                   options_.variance.neighbours_or_default());
}

Index FunctionQuery::block_rows() const {
  return plan_.variance == "exact" ? plan_.variance_block : kRows;
}

QueryBlock FunctionQuery::block(ConstMatrixView inputs, Index first) const {
  QueryBlock block;
  block.x = inputs;
  model_.scaling.scale_inputs(block.x);
  check_range("an input on the model's scale", block.x, first);
  block.prior = model_.problem.kernel.diagonal(block.x);
  check_range("the prior variance", block.prior, first);
  block.basis = model_.problem.basis(block.x);
  return block;
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
  return out;
}

Matrix FunctionQuery::solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
                            const Observer& observer) const {
  // Default: the variance of f is known to a thousandth of the (mean) noise variance or better,
  // from r'D^-1 r <= |r|^2 / min D.
  const double largest = b.colwise().norm().maxCoeff();
  const double allowed =
      std::sqrt(1e-3 * system_->noise().least() * system_->noise().harmonic_mean());
  const double tolerance =
      options_.tolerance.value_or(std::clamp(allowed / std::max(largest, 1e-300), 1e-10, 1e-2));
  Matrix r;
  const auto report = system_->solve(b, u, tolerance, observer, &r);
  matvecs += report.matvecs;
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the {} not found to tolerance {:.1e}: {} after {} iterations, relative residual {:.1e}; "
        "use `solver=cholesky`, a looser `tolerance`, or {}",
        approximate() ? "exact variances that measure the error of the others were"
                      : "variances were",
        tolerance, to_string(report.stop), report.iterations, report.relative_residual,
        approximate() ? "`check_rows=0`" : "`variance=vecchia` or none"));
  return r;
}

// For u with residual r = k* - H u:  k*'H^-1 k* = k*'u + u'r + r'H^-1 r, and the last term lies in
// [0, r'D^-1 r]: leaving it out overstates the variance by no more than that.
FunctionQuery::Explained FunctionQuery::explained_by_solves(ConstMatrixView cross,
                                                            ConstVectorView prior,
                                                            std::int64_t& matvecs,
                                                            const Observer& observer) const {
  Matrix u = Matrix::Zero(cross.rows(), cross.cols());
  const Matrix r = solve(cross, u, matvecs, observer);
  Explained explained{Vector(cross.cols()), system_->noise().inverse_squares(r),
                      rounding_.iterative(prior, u)};
  Vector correction(cross.cols());
  const auto count = static_cast<std::size_t>(cross.cols());
  linalg::column_dots(cross, u, {explained.value.data(), count});
  linalg::column_dots(u, r, {correction.data(), count});
  explained.value += correction;
  return explained;
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
  out.variance = prior - explained.value + trend;
  for (Index i = 0; i < out.variance.size(); ++i) {
    explained.rounded(i) += inference::trend_variance_error(std::max(0.0, trend(i)), prior(i),
                                                            model_.certificate.trend_residual);
    const double high = out.variance(i) + explained.rounded(i);
    const double low = out.variance(i) - explained.rounded(i) - explained.truncated(i);
    out.clamped += raise_to_floor(out.variance(i), prior(i));
    const double sd = std::sqrt(out.variance(i));
    out.sd_error_bound = std::max({out.sd_error_bound, sd - std::sqrt(std::max(0.0, low)),
                                   std::sqrt(std::max(0.0, high)) - sd});
  }
  return out;
}

// By neighbours, or from the deviations of draws from the mean, which is known: no degree of
// freedom is spent on it.
void FunctionQuery::approximate_variances(const QueryBlock& block, ConstMatrixView deviations,
                                          Moments& out) const {
  if (local_)
    out.variance = block.prior - local_->explained(block.x) + trend_variance(block);
  else
    out.variance = deviations.rowwise().squaredNorm() / static_cast<double>(deviations.cols());
  for (Index i = 0; i < out.variance.size(); ++i)
    out.clamped += raise_to_floor(out.variance(i), block.prior(i));
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

Moments FunctionQuery::moments(const QueryBlock& block, Index first, const Observer& observer) {
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
  check_range("the predicted variance", out.variance, first);
  out.mean = std::move(mean);
  if (function_.offset != 0) out.mean.array() += function_.offset;
  out.error_bound = bound_(block.prior, block.basis);
  out.deviations = deviations.leftCols(options_.variance.joint_samples);
  out.matvecs += matvecs;
  return out;
}

}  // namespace mercer::models
