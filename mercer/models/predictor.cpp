#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/models/certificate.hpp"
#include "mercer/models/regression.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Variances below this share of the prior variance are rounding, not knowledge.
constexpr double kVarianceFloor = 1e-12;

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
    if (!options.variance) return;
    plan = make_plan(model.problem.kernel, model.noise.harmonic_mean(), model.x,
                     prediction_method(model, options), {}, PlanFor::predict);
    system.emplace(model.problem.kernel, model.noise, model.x, plan.system);
  }

  // Variances of f at the rows of a scaled block; also the largest error of a variance.
  struct Variances {
    Vector latent;
    double sd_error_bound = 0;
    Index clamped = 0;
    std::int64_t matvecs = 0;
  };
  Variances variances(ConstMatrixView x, ConstVectorView prior, ConstMatrixView basis,
                      const Observer& observer) const;
  // k*'H^-1 k* and how far it may be from the exact value: `truncated` below it by leaving the
  // solve early, `rounded` to either side.
  struct Explained {
    Vector value, truncated, rounded;
  };
  Explained explained_directly(ConstMatrixView cross, ConstVectorView prior) const;
  Explained explained_by_solves(ConstMatrixView cross, ConstVectorView prior, Variances& out,
                                const Observer& observer) const;

  RegressionModel model;
  PredictOptions options;
  ErrorBound bound;
  VarianceRounding rounding;
  Plan plan;
  std::optional<inference::RegularizedSystem> system;
};

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

// For u with residual r = k* - H u:  k*'H^-1 k* = k*'u + u'r + r'H^-1 r, and the last term lies in
// [0, r'D^-1 r]: leaving it out overstates the variance by no more than that.
Predictor::Impl::Explained Predictor::Impl::explained_by_solves(ConstMatrixView cross,
                                                                ConstVectorView prior,
                                                                Variances& out,
                                                                const Observer& observer) const {
  // Default: the variance of f is known to a thousandth of the (mean) noise variance or better,
  // from r'D^-1 r <= |r|^2 / min D.
  const double largest = cross.colwise().norm().maxCoeff();
  const double allowed =
      std::sqrt(1e-3 * system->noise().least() * system->noise().harmonic_mean());
  const double tolerance =
      options.tolerance.value_or(std::clamp(allowed / std::max(largest, 1e-300), 1e-10, 1e-2));
  Matrix u = Matrix::Zero(cross.rows(), cross.cols());
  const auto report = system->solve(cross, u, tolerance, observer);
  out.matvecs += report.matvecs;
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the variances were not found to tolerance {:.1e}: {} after {} iterations, relative "
        "residual {:.1e}; use --solver cholesky, a looser --tolerance, or --no-variance",
        tolerance, to_string(report.stop), report.iterations, report.relative_residual));
  Matrix r(cross.rows(), cross.cols());
  system->residual(cross, u, r);
  out.matvecs += cross.cols();
  Explained explained{Vector(cross.cols()), system->noise().inverse_squares(r),
                      rounding.iterative(prior, u)};
  Vector correction(cross.cols());
  const auto count = static_cast<std::size_t>(cross.cols());
  linalg::column_dots(cross, u, {explained.value.data(), count});
  linalg::column_dots(u, r, {correction.data(), count});
  explained.value += correction;
  return explained;
}

Predictor::Impl::Variances Predictor::Impl::variances(ConstMatrixView x, ConstVectorView prior,
                                                      ConstMatrixView basis,
                                                      const Observer& observer) const {
  Variances out;
  Matrix cross(model.x.rows(), x.rows());
  operators::cross_matrix(model.problem.kernel, model.x, x, cross);
  Explained explained = system->factor() != nullptr
                            ? explained_directly(cross, prior)
                            : explained_by_solves(cross, prior, out, observer);
  out.latent = prior - explained.value;
  if (basis.cols() > 0) {
    // q = a* - A'H^-1 k*: the part of the variance that comes from estimating the trend.
    Matrix q = basis.transpose();
    linalg::gemm(-1.0, model.weights.basis_solves, linalg::Transpose::yes, cross,
                 linalg::Transpose::no, 1.0, q);
    const Vector trend =
        (q.array() * (model.weights.beta_covariance * q).array()).colwise().sum().matrix();
    out.latent += trend;
    for (Index i = 0; i < trend.size(); ++i)
      explained.rounded(i) +=
          trend_variance_error(std::max(0.0, trend(i)), prior(i), model.certificate.trend_residual);
  }
  for (Index i = 0; i < out.latent.size(); ++i) {
    const double floor = kVarianceFloor * prior(i);
    const double high = out.latent(i) + explained.rounded(i);
    const double low = out.latent(i) - explained.rounded(i) - explained.truncated(i);
    if (out.latent(i) < floor) {
      out.latent(i) = floor;
      ++out.clamped;
    }
    const double sd = std::sqrt(out.latent(i));
    out.sd_error_bound = std::max({out.sd_error_bound, sd - std::sqrt(std::max(0.0, low)),
                                   std::sqrt(std::max(0.0, high)) - sd});
  }
  return out;
}

Predictor::Predictor(RegressionModel model, PredictOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Predictor::~Predictor() = default;

const RegressionModel& Predictor::model() const { return impl_->model; }
const Plan& Predictor::plan() const { return impl_->plan; }

Predictions Predictor::predict(ConstMatrixView inputs, const ProgressCallback& progress,
                               const data::NoiseColumns& noise) const {
  const auto& model = impl_->model;
  if (inputs.cols() != model.x.cols())
    throw DimensionMismatch("predict: columns of the inputs", inputs.cols(), "inputs of the model",
                            model.x.cols());
  const Index m = inputs.rows();
  Predictions out;
  out.mean.resize(m);
  out.error_bound.resize(m);
  if (impl_->options.variance) out.sd_latent.resize(m);
  const Index block = impl_->options.variance ? impl_->plan.variance_block : Index{4096};
  for (Index first = 0; first < m; first += block) {
    const Index rows = std::min(block, m - first);
    const auto report = [&](const Iteration&) {
      return progress
                 ? progress({"predict", static_cast<double>(first) / static_cast<double>(m), ""})
                 : Action::proceed;
    };
    if (report({}) == Action::stop) throw Interrupted("interrupted while predicting");
    Matrix x = inputs.middleRows(first, rows);
    model.scaling.scale_inputs(x);
    check_range("an input on the model's scale", x, first);
    const Vector prior = model.problem.kernel.diagonal(x);
    check_range("the prior variance", prior, first);
    const Matrix basis = model.problem.basis(x);
    Vector mean(rows);
    operators::cross_apply(model.problem.kernel, x, model.x, model.weights.w,
                           operators::Precision::float64, mean);
    if (basis.cols() > 0) mean += basis * model.weights.beta;
    out.mean.segment(first, rows) = mean;
    out.error_bound.segment(first, rows) = impl_->bound(prior, basis);
    if (!impl_->options.variance) continue;
    const auto v = impl_->variances(x, prior, basis, report);
    check_range("the predicted variance", v.latent, first);
    out.sd_latent.segment(first, rows) = v.latent.cwiseSqrt();
    out.sd_error_bound = std::max(out.sd_error_bound, v.sd_error_bound);
    out.clamped_variances += v.clamped;
    out.matvecs += v.matvecs;
  }
  if (impl_->options.variance) {
    // The learned noise, and what is known of the observation; jitter is not part of it.
    const auto observed = row_noise(noise, model.scaling).at(model.problem.noise);
    observed.require_size(m, "predict");
    out.sd_obs = (out.sd_latent.array().square() + observed.vector(m).array()).sqrt();
    out.sd_obs *= model.scaling.target_sd;
    out.sd_latent *= model.scaling.target_sd;
    out.sd_error_bound = model.scaling.unscale_width(out.sd_error_bound);
  }
  model.scaling.unscale_target(out.mean);
  // Undoing the scaling rounds too: it matters for targets far from zero.
  constexpr double eps = std::numeric_limits<double>::epsilon();
  out.error_bound = model.scaling.target_sd * out.error_bound.array() +
                    2 * eps * (out.mean.array().abs() + std::abs(model.scaling.target_mean));
  check_range("the predicted mean", out.mean, 0);
  check_range("the error bound", out.error_bound, 0);
  // Far beyond the quantiles that anyone asks for.
  if (impl_->options.variance)
    check_range("the predicted interval", Vector(out.mean.cwiseAbs() + 10 * out.sd_obs), 0);
  return out;
}

}  // namespace mercer::models
