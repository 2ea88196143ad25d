#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>

#include "mercer/approximations/local_variance.hpp"
#include "mercer/core/error.hpp"
#include "mercer/inference/pathwise.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/models/certificate.hpp"
#include "mercer/models/regression.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Rows at a time where no solve sets the width.
constexpr Index kRows = 1024;

MethodOptions prediction_method(const RegressionModel& model, const PredictOptions& options) {
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

/// Kernels that grow with the inputs (linear, poly) overflow far enough out; the first such row.
template <class Values>
void check_range(const char* what, const Values& values, Index first) {
  for (Index i = 0; i < values.rows(); ++i)
    if (!values.row(i).allFinite())
      throw PredictionOverflow(
          first + i,
          fmt::format("{} overflows double precision: the inputs of this row lie too far "
                      "from the training data for this kernel; correct or remove the row",
                      what));
}

}  // namespace

PredictionOverflow::PredictionOverflow(Index row_index, const std::string& why)
    : DataError(fmt::format("row {}: {}", row_index + 1, why)), row(row_index), reason(why) {}

Vector Predictions::quantile(double p) const {
  const double z = boost::math::quantile(boost::math::normal(), p);
  return mean + z * sd_obs;
}

struct Predictor::Impl {
  Impl(RegressionModel m, PredictOptions o)
      : model(std::move(m)),
        options(std::move(o)),
        bound(model.problem, model.weights, model.certificate, model.x),
        rounding(model.problem, model.noise, model.x) {
    check(options.variance);
    if (model.mean_only) {
      if ((options.variance.method != "auto" && options.variance.method != "none") ||
          options.variance.joint_samples > 0)
        throw InvalidArgument(
            "kernel ridge regression has a mean and no uncertainty; fit with --method gp for one");
      options.variance.method = "none";
    }
    if (options.variance.method == "none" && options.variance.joint_samples == 0) return;
    plan = make_plan(model.problem.kernel, model.noise.harmonic_mean(), model.x,
                     prediction_method(model, options), {}, PlanFor::predict, options.variance);
    if (plan.solves) system.emplace(model.problem.kernel, model.noise, model.x, plan.system);
    if (plan.variance == "vecchia")
      local.emplace(model.problem.kernel, model.x, model.noise.vector(model.x.rows()),
                    options.variance.neighbours_or_default());
  }

  bool with_variance() const { return plan.variance != "none"; }
  bool approximate() const { return with_variance() && plan.variance != "exact"; }

  // A block of rows on the model's scale.
  struct Block {
    Matrix x, basis;
    Vector prior;  // k**
  };
  Block scaled_block(ConstMatrixView inputs, Index first, Index rows) const;
  Vector means(const Block& block) const;

  // Variances of f at the rows of a block; also the largest error of a variance.
  struct Variances {
    Vector latent;
    double sd_error_bound = 0;
    Index clamped = 0;
    std::int64_t matvecs = 0;
  };
  Variances exact_variances(const Block& block, const Observer& observer) const;
  Variances approximate_variances(const Block& block, ConstMatrixView deviations) const;
  // The part of a variance that comes from estimating the trend.
  Vector trend_variance(const Block& block) const;
  // u = H^-1 b so well that |r|^2/s2 is below a thousandth of the noise; throws when that is not
  // reached. Returns r = b - H u.
  Matrix solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
               const Observer& observer) const;
  void to_target_units(Predictions& p, const data::NoiseColumns& noise) const;
  // The draws, made when they are first needed.
  const inference::PathwiseDraws& make_draws(std::int64_t& matvecs, const Observer& observer);
  // k*'H^-1 k* and how far it may be from the exact value: `truncated` below it by leaving the
  // solve early, `rounded` to either side.
  struct Explained {
    Vector value, truncated, rounded;
  };
  Explained explained_directly(ConstMatrixView cross, ConstVectorView prior) const;
  Explained explained_by_solves(ConstMatrixView cross, ConstVectorView prior, std::int64_t& matvecs,
                                const Observer& observer) const;

  RegressionModel model;
  PredictOptions options;
  ErrorBound bound;
  VarianceRounding rounding;
  Plan plan;
  std::optional<inference::RegularizedSystem> system;
  std::optional<approximations::LocalVariance> local;
  std::optional<inference::PathwiseDraws> draws;
};

Predictor::Impl::Block Predictor::Impl::scaled_block(ConstMatrixView inputs, Index first,
                                                     Index rows) const {
  Block block;
  block.x = inputs.middleRows(first, rows);
  model.scaling.scale_inputs(block.x);
  check_range("an input on the model's scale", block.x, first);
  block.prior = model.problem.kernel.diagonal(block.x);
  check_range("the prior variance", block.prior, first);
  block.basis = model.problem.basis(block.x);
  return block;
}

Vector Predictor::Impl::means(const Block& block) const {
  Vector mean(block.x.rows());
  operators::cross_apply(model.problem.kernel, block.x, model.x, model.weights.w,
                         operators::Precision::float64, mean);
  if (block.basis.cols() > 0) mean += block.basis * model.weights.beta;
  return mean;
}

// k*'H^-1 k* = |L^-1 k*|^2.
Predictor::Impl::Explained Predictor::Impl::explained_directly(ConstMatrixView cross,
                                                               ConstVectorView prior) const {
  Matrix v = cross;
  system->factor()->solve_lower_in_place(v);
  Explained out;
  out.value.resize(v.cols());
  linalg::column_dots(v, v, {out.value.data(), static_cast<std::size_t>(v.cols())});
  out.truncated = Vector::Zero(v.cols());
  out.rounded = rounding.direct(prior, out.value);
  return out;
}

Matrix Predictor::Impl::solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
                              const Observer& observer) const {
  // Default: the variance of f is known to a thousandth of the (mean) noise variance or better,
  // from r'D^-1 r <= |r|^2 / min D.
  const double largest = b.colwise().norm().maxCoeff();
  const double allowed =
      std::sqrt(1e-3 * system->noise().least() * system->noise().harmonic_mean());
  const double tolerance =
      options.tolerance.value_or(std::clamp(allowed / std::max(largest, 1e-300), 1e-10, 1e-2));
  Matrix r;
  const auto report = system->solve(b, u, tolerance, observer, &r);
  matvecs += report.matvecs;
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the {} not found to tolerance {:.1e}: {} after {} iterations, relative residual {:.1e}; "
        "use --solver cholesky, a looser --tolerance, or {}",
        approximate() ? "exact variances that measure the error of the others were"
                      : "variances were",
        tolerance, to_string(report.stop), report.iterations, report.relative_residual,
        approximate() ? "--check-rows 0" : "--variance vecchia or none"));
  return r;
}

// For u with residual r = k* - H u:  k*'H^-1 k* = k*'u + u'r + r'H^-1 r, and the last term lies in
// [0, r'D^-1 r]: leaving it out overstates the variance by no more than that.
Predictor::Impl::Explained Predictor::Impl::explained_by_solves(ConstMatrixView cross,
                                                                ConstVectorView prior,
                                                                std::int64_t& matvecs,
                                                                const Observer& observer) const {
  Matrix u = Matrix::Zero(cross.rows(), cross.cols());
  const Matrix r = solve(cross, u, matvecs, observer);
  Explained explained{Vector(cross.cols()), system->noise().inverse_squares(r),
                      rounding.iterative(prior, u)};
  Vector correction(cross.cols());
  const auto count = static_cast<std::size_t>(cross.cols());
  linalg::column_dots(cross, u, {explained.value.data(), count});
  linalg::column_dots(u, r, {correction.data(), count});
  explained.value += correction;
  return explained;
}

// q'M^-1 q with q = a* - A'H^-1 k*.
Vector Predictor::Impl::trend_variance(const Block& block) const {
  if (block.basis.cols() == 0) return Vector::Zero(block.x.rows());
  Matrix q(block.x.rows(), block.basis.cols());
  operators::cross_apply(model.problem.kernel, block.x, model.x, model.weights.basis_solves,
                         operators::Precision::float64, q);
  q = block.basis - q;
  return (q.array() * (q * model.weights.beta_covariance).array()).rowwise().sum();
}

Predictor::Impl::Variances Predictor::Impl::exact_variances(const Block& block,
                                                            const Observer& observer) const {
  const Vector& prior = block.prior;
  Variances out;
  Matrix cross(model.x.rows(), block.x.rows());
  operators::cross_matrix(model.problem.kernel, model.x, block.x, cross);
  Explained explained = system->factor() != nullptr
                            ? explained_directly(cross, prior)
                            : explained_by_solves(cross, prior, out.matvecs, observer);
  const Vector trend = trend_variance(block);
  out.latent = prior - explained.value + trend;
  for (Index i = 0; i < out.latent.size(); ++i) {
    explained.rounded(i) +=
        trend_variance_error(std::max(0.0, trend(i)), prior(i), model.certificate.trend_residual);
    const double high = out.latent(i) + explained.rounded(i);
    const double low = out.latent(i) - explained.rounded(i) - explained.truncated(i);
    out.clamped += raise_to_floor(out.latent(i), prior(i));
    const double sd = std::sqrt(out.latent(i));
    out.sd_error_bound = std::max({out.sd_error_bound, sd - std::sqrt(std::max(0.0, low)),
                                   std::sqrt(std::max(0.0, high)) - sd});
  }
  return out;
}

// By neighbours, or from the deviations of draws from the mean, which is known: no degree of
// freedom is spent on it.
Predictor::Impl::Variances Predictor::Impl::approximate_variances(
    const Block& block, ConstMatrixView deviations) const {
  Variances out;
  if (local)
    out.latent = block.prior - local->explained(block.x) + trend_variance(block);
  else
    out.latent = deviations.rowwise().squaredNorm() / static_cast<double>(deviations.cols());
  for (Index i = 0; i < out.latent.size(); ++i)
    out.clamped += raise_to_floor(out.latent(i), block.prior(i));
  return out;
}

const inference::PathwiseDraws& Predictor::Impl::make_draws(std::int64_t& matvecs,
                                                            const Observer& observer) {
  if (draws) return *draws;
  const inference::PathwiseOptions wanted{.count = options.variance.draws_needed(),
                                          .seed = model.method.seed};
  const auto solve_blocks = [&](ConstMatrixView b, MatrixView u) {
    for (Index first = 0; first < b.cols(); first += plan.variance_block) {
      const Index columns = std::min(plan.variance_block, b.cols() - first);
      solve(b.middleCols(first, columns), u.middleCols(first, columns), matvecs, observer);
    }
  };
  const Vector noise = system->noise().vector(model.x.rows());
  return draws.emplace(model.problem, model.x, noise, model.weights, wanted, solve_blocks);
}

void Predictor::Impl::to_target_units(Predictions& p, const data::NoiseColumns& noise) const {
  const auto& scaling = model.scaling;
  if (with_variance()) {
    // The learned noise, and what is known of the observation; jitter is not part of it.
    const Index m = p.sd_latent.size();
    const auto observed = row_noise(noise, scaling).at(model.problem.noise());
    observed.require_size(m, "predict");
    p.sd_obs = (p.sd_latent.array().square() + observed.vector(m).array()).sqrt();
    p.sd_obs *= scaling.target_sd;
    p.sd_latent *= scaling.target_sd;
    if (p.sd_error_bound) p.sd_error_bound = scaling.unscale_width(*p.sd_error_bound);
  }
  scaling.unscale_target(p.mean);
  p.samples *= scaling.target_sd;
  p.samples.colwise() += p.mean;
  // Undoing the scaling rounds too: it matters for targets far from zero.
  constexpr double eps = std::numeric_limits<double>::epsilon();
  p.error_bound = scaling.target_sd * p.error_bound.array() +
                  2 * eps * (p.mean.array().abs() + std::abs(scaling.target_mean));
  check_range("the predicted mean", p.mean, 0);
  check_range("the error bound", p.error_bound, 0);
  check_range("a draw from the posterior", p.samples, 0);
  // Far beyond the quantiles that anyone asks for.
  if (with_variance())
    check_range("the predicted interval", Vector(p.mean.cwiseAbs() + 10 * p.sd_obs), 0);
}

Predictor::Predictor(RegressionModel model, PredictOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Predictor::~Predictor() = default;

const RegressionModel& Predictor::model() const { return impl_->model; }
const Plan& Predictor::plan() const { return impl_->plan; }

Predictions Predictor::predict(ConstMatrixView inputs, const ProgressCallback& progress,
                               const data::NoiseColumns& noise) const {
  auto sample = row_sample();
  auto out = predict(inputs, sample, progress, noise);
  out.sd_error = sd_error(sample, progress);
  if (out.sd_error) out.matvecs += out.sd_error->matvecs;
  return out;
}

Predictions Predictor::predict(ConstMatrixView inputs, RowSample& sample,
                               const ProgressCallback& progress,
                               const data::NoiseColumns& noise) const {
  const auto& model = impl_->model;
  const auto& options = impl_->options.variance;
  if (inputs.cols() != model.x.cols())
    throw DimensionMismatch("predict: columns of the inputs", inputs.cols(), "inputs of the model",
                            model.x.cols());
  const Index m = inputs.rows();
  Predictions out;
  out.mean.resize(m);
  out.error_bound.resize(m);
  out.samples.resize(m, options.joint_samples);
  if (impl_->with_variance()) out.sd_latent.resize(m);
  if (impl_->approximate()) out.sd_error_bound.reset();
  const bool exact = impl_->plan.variance == "exact";
  const Index block_rows = exact ? impl_->plan.variance_block : kRows;
  for (Index first = 0; first < m; first += block_rows) {
    const Index rows = std::min(block_rows, m - first);
    const auto report = [&](const Iteration&) {
      return progress
                 ? progress({"predict", static_cast<double>(first) / static_cast<double>(m), ""})
                 : Action::proceed;
    };
    if (report({}) == Action::stop) throw Interrupted("interrupted while predicting");
    const auto block = impl_->scaled_block(inputs, first, rows);
    out.mean.segment(first, rows) = impl_->means(block);
    out.error_bound.segment(first, rows) = impl_->bound(block.prior, block.basis);
    Matrix deviations(rows, 0);
    if (options.draws_needed() > 0) {
      deviations = impl_->make_draws(out.matvecs, report).deviations(block.x);
      out.samples.middleRows(first, rows) = deviations.leftCols(options.joint_samples);
    }
    if (!impl_->with_variance()) continue;
    const auto v = exact ? impl_->exact_variances(block, report)
                         : impl_->approximate_variances(block, deviations);
    check_range("the predicted variance", v.latent, first);
    out.sd_latent.segment(first, rows) = v.latent.cwiseSqrt();
    if (exact) out.sd_error_bound = std::max(*out.sd_error_bound, v.sd_error_bound);
    out.clamped_variances += v.clamped;
    out.matvecs += v.matvecs;
  }
  impl_->to_target_units(out, noise);
  if (impl_->approximate()) sample.add(inputs, out.sd_latent);
  return out;
}

RowSample Predictor::row_sample() const {
  const auto& options = impl_->options.variance;
  return {impl_->approximate() ? options.check_rows_or_default() : 0, impl_->model.method.seed};
}

std::optional<SdError> Predictor::sd_error(const RowSample& sample,
                                           const ProgressCallback& progress) const {
  if (sample.size() == 0) return {};
  const auto& model = impl_->model;
  const auto observer = [&](const Iteration&) {
    return progress ? progress({"check variances", -1, ""}) : Action::proceed;
  };
  SdError out;
  const Matrix inputs = sample.inputs();
  for (Index first = 0; first < inputs.rows(); first += impl_->plan.variance_block) {
    const Index rows = std::min(impl_->plan.variance_block, inputs.rows() - first);
    const auto v = impl_->exact_variances(impl_->scaled_block(inputs, first, rows), observer);
    for (Index i = 0; i < rows; ++i)
      out.add(sample.sd()[static_cast<std::size_t>(first + i)],
              model.scaling.unscale_width(std::sqrt(v.latent(i))));
    out.matvecs += v.matvecs;
  }
  return out;
}

}  // namespace mercer::models
