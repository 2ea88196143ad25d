#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
  /// The belief about f on the scale of the likelihood.
  struct Belief {
    double mean = 0, variance = 0;
  };
  Belief belief(const LatentPredictions& p, Index i, Index c) const {
    const auto& s = model.scaling;
    return {(p.latent_mean(i, c) - s.target_mean) / s.target_sd,
            p.latent_sd.cols() > 0 ? std::pow(p.latent_sd(i, c) / s.target_sd, 2) : 0.0};
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
  const double unit = model.scaling.target_sd;  // 1 unless f is a number like y
  out.latent_mean.col(c) = p.mean.array() + model.offset(c);
  model.scaling.unscale_target(out.latent_mean.col(c));
  out.error_bound.col(c) = unit * p.error_bound;
  if (p.sd_latent.size() > 0) {
    if (out.latent_sd.cols() == 0) out.latent_sd.resize(inputs.rows(), model.a.cols());
    out.latent_sd.col(c) = unit * p.sd_latent;
  }
  if (out.sd_error_bound && p.sd_error_bound)
    out.sd_error_bound = std::max(*out.sd_error_bound, unit * *p.sd_error_bound);
  else
    out.sd_error_bound.reset();
  if (p.sd_error) {
    auto error = *p.sd_error;
    error.largest *= unit;
    error.rms *= unit;
    if (!out.sd_error || error.largest > out.sd_error->largest) out.sd_error = error;
  }
  out.clamped_variances += p.clamped_variances;
  out.matvecs += p.matvecs;
}

// Both links are odd around 1/2, so the rarer side is computed and the other is 1 minus it: as 1 -
// p it would be no more than rounding, and its log nothing at all.
void LatentPredictor::Impl::add_classes(LatentPredictions& out) const {
  const Index m = out.latent_mean.rows(), c = out.latent_mean.cols();
  const auto& likelihood = *model.problem.likelihood;
  const auto rare = [&](Index i, Index j) {
    const auto f = belief(out, i, j);
    return likelihood.predictive(-std::abs(f.mean), f.variance).mean;
  };
  Matrix p(m, std::max<Index>(c, 2));
  if (c == 1) {
    for (Index i = 0; i < m; ++i) {
      const Index which = belief(out, i, 0).mean > 0 ? 0 : 1;
      p(i, which) = rare(i, 0);
      p(i, 1 - which) = 1 - p(i, which);
    }
    out.probabilities = std::move(p);
    return;
  }
  // That class c is true and all others are not, given that exactly one is: the odds, normalised.
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < c; ++j) {
      const double q = std::max(rare(i, j), std::numeric_limits<double>::min());
      const double log_odds = std::log(q) - std::log1p(-q);
      p(i, j) = belief(out, i, j).mean > 0 ? -log_odds : log_odds;
    }
    p.row(i).array() = (p.row(i).array() - p.row(i).maxCoeff()).exp();
    p.row(i) /= p.row(i).sum();
  }
  out.probabilities = std::move(p);
}

void LatentPredictor::Impl::add_numbers(LatentPredictions& out) const {
  const Index m = out.latent_mean.rows();
  for (Vector* v : {&out.mean, &out.sd_obs, &out.q025, &out.q05, &out.q95, &out.q975}) v->resize(m);
  const auto& likelihood = *model.problem.likelihood;
  for (Index i = 0; i < m; ++i) {
    const auto [f, v] = belief(out, i, 0);
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
  for (Index i = 0; i < y.size(); ++i) {
    const auto [f, v] = impl_->belief(predictions, i, 0);
    out(i) = likelihood.log_predictive(y(i), f, v) - std::log(model.scaling.target_sd);
  }
  return out;
}

}  // namespace mercer::models
