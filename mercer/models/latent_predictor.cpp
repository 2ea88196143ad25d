#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/models/latent.hpp"

namespace mercer::models {
namespace {

// W^-1 must be a number. Times 1 / k(x, x): a point of less curvature would take less than this
// share of a variance away.
constexpr double kLeastCurvature = 1e-8;

// The latent function c as a regression: its mean is k*'a, and its variance that of observations
// with the noise W^-1.
RegressionModel latent_regression(const LatentModel& model, Index c) {
  const auto& w = model.w.col(c);
  const double prior = model.problem.kernel.diagonal(model.x).maxCoeff();
  const double floor = kLeastCurvature / std::max(prior, 1e-300);
  RegressionModel out{model.schema,
                      model.scaling,
                      {model.problem.kernel, 1.0, inference::MeanKind::zero, {}},
                      Vector(w.cwiseMax(floor).cwiseInverse()),
                      model.x,
                      {},
                      {},
                      model.method,
                      {}};
  out.scaling.target_mean = 0;
  out.scaling.target_sd = 1;
  out.weights.w = model.a.col(c);
  out.weights.basis_solves.resize(model.x.rows(), 0);
  // |mean - exact| <= sqrt(k**) times this: the certificate of regression has the same form.
  out.certificate.weighted_residual = model.certificate.residual(c);
  return out;
}

void normalise(Matrix& probabilities) {
  for (Index i = 0; i < probabilities.rows(); ++i) {
    const double sum = probabilities.row(i).sum();
    if (sum > 0)
      probabilities.row(i) /= sum;
    else
      probabilities.row(i).setConstant(1.0 / static_cast<double>(probabilities.cols()));
  }
}

}  // namespace

struct LatentPredictor::Impl {
  LatentModel model;
  PredictOptions options;
  std::unique_ptr<Predictor> kept;  // of a single latent function

  std::unique_ptr<Predictor> make(Index c) const {
    return std::make_unique<Predictor>(latent_regression(model, c), options);
  }
  void add_latent(const Predictor& predictor, Index c, ConstMatrixView inputs,
                  const ProgressCallback& progress, LatentPredictions& out) const;
  void add_classes(LatentPredictions& out) const;
  void add_numbers(LatentPredictions& out) const;
  double variance(const LatentPredictions& p, Index i, Index c) const {
    return p.latent_sd.cols() > 0 ? std::pow(p.latent_sd(i, c), 2) : 0.0;
  }
};

LatentPredictor::LatentPredictor(LatentModel model, PredictOptions options)
    : impl_(new Impl{std::move(model), std::move(options), nullptr}) {
  check(impl_->options.variance);
  if (impl_->options.variance.joint_samples > 0)
    throw InvalidArgument("joint samples are those of Gaussian regression");
  if (impl_->model.map_only) impl_->options.variance.method = "none";
  if (impl_->model.a.cols() == 1) impl_->kept = impl_->make(0);
}
LatentPredictor::~LatentPredictor() = default;
const LatentModel& LatentPredictor::model() const { return impl_->model; }

void LatentPredictor::Impl::add_latent(const Predictor& predictor, Index c, ConstMatrixView inputs,
                                       const ProgressCallback& progress,
                                       LatentPredictions& out) const {
  const auto p = predictor.predict(inputs, progress);
  out.variance = predictor.plan().variance;
  out.latent_mean.col(c) = p.mean.array() + model.offset(c);
  out.error_bound.col(c) = p.error_bound;
  if (p.sd_latent.size() > 0) {
    if (out.latent_sd.cols() == 0) out.latent_sd.resize(inputs.rows(), model.a.cols());
    out.latent_sd.col(c) = p.sd_latent;
  }
  if (out.sd_error_bound && p.sd_error_bound)
    out.sd_error_bound = std::max(*out.sd_error_bound, *p.sd_error_bound);
  else
    out.sd_error_bound.reset();
  if (p.sd_error) {
    if (!out.sd_error || p.sd_error->largest > out.sd_error->largest) out.sd_error = p.sd_error;
  }
  out.clamped_variances += p.clamped_variances;
  out.matvecs += p.matvecs;
}

void LatentPredictor::Impl::add_classes(LatentPredictions& out) const {
  const Index m = out.latent_mean.rows(), c = out.latent_mean.cols();
  const auto& likelihood = *model.problem.likelihood;
  Matrix p(m, std::max<Index>(c, 2));
  if (c == 1) {
    // The rarer class is computed, for both links are odd around 1/2; as 1 - p it would be no more
    // than rounding, and its log nothing at all.
    for (Index i = 0; i < m; ++i) {
      const double f = out.latent_mean(i, 0);
      const Index rare = f > 0 ? 0 : 1;
      p(i, rare) = likelihood.predictive(-std::abs(f), variance(out, i, 0)).mean;
      p(i, 1 - rare) = 1 - p(i, rare);
    }
    out.probabilities = std::move(p);
    return;
  }
  for (Index j = 0; j < c; ++j)
    for (Index i = 0; i < m; ++i)
      p(i, j) = likelihood.predictive(out.latent_mean(i, j), variance(out, i, j)).mean;
  out.probabilities = std::move(p);
  normalise(out.probabilities);
}

void LatentPredictor::Impl::add_numbers(LatentPredictions& out) const {
  const Index m = out.latent_mean.rows();
  for (Vector* v : {&out.mean, &out.sd_obs, &out.q025, &out.q05, &out.q95, &out.q975})
    v->resize(m);
  const auto& likelihood = *model.problem.likelihood;
  for (Index i = 0; i < m; ++i) {
    const double f = out.latent_mean(i, 0), v = variance(out, i, 0);
    const auto moments = likelihood.predictive(f, v);
    if (!std::isfinite(moments.mean) || !std::isfinite(moments.variance))
      throw PredictionOverflow(i,
                               "the predicted mean or variance overflows double precision: the "
                               "inputs of this row lie too far from the training data");
    out.mean(i) = moments.mean;
    out.sd_obs(i) = std::sqrt(moments.variance);
    out.q025(i) = likelihood.predictive_quantile(0.025, f, v);
    out.q05(i) = likelihood.predictive_quantile(0.05, f, v);
    out.q95(i) = likelihood.predictive_quantile(0.95, f, v);
    out.q975(i) = likelihood.predictive_quantile(0.975, f, v);
  }
  for (Vector* values : {&out.mean, &out.q025, &out.q05, &out.q95, &out.q975})
    model.scaling.unscale_target(*values);
  out.sd_obs *= model.scaling.target_sd;
}

LatentPredictions LatentPredictor::predict(ConstMatrixView inputs,
                                           const ProgressCallback& progress) const {
  const auto& self = *impl_;
  const Index m = inputs.rows(), c = self.model.a.cols();
  LatentPredictions out;
  out.latent_mean.resize(m, c);
  out.error_bound.resize(m, c);
  // A factor at a time: those of all classes may not fit.
  for (Index j = 0; j < c; ++j) {
    if (self.kept)
      self.add_latent(*self.kept, j, inputs, progress, out);
    else
      self.add_latent(*self.make(j), j, inputs, progress, out);
  }
  if (self.model.classifies())
    self.add_classes(out);
  else
    self.add_numbers(out);
  return out;
}

Vector LatentPredictor::log_density(const LatentPredictions& predictions,
                                    ConstVectorView target) const {
  const auto& model = impl_->model;
  const auto& likelihood = *model.problem.likelihood;
  Vector y = target;
  for (Index i = 0; i < y.size(); ++i)
    if (const auto why = likelihood.fault(y(i)); !why.empty())
      throw DataError(fmt::format("row {}: the target is {}, but it {}", i + 1, y(i), why));
  model.scaling.scale_target(y);
  Vector out(y.size());
  for (Index i = 0; i < y.size(); ++i)
    out(i) = likelihood.log_predictive(y(i), predictions.latent_mean(i, 0),
                                       impl_->variance(predictions, i, 0)) -
             std::log(model.scaling.target_sd);
  return out;
}

}  // namespace mercer::models
