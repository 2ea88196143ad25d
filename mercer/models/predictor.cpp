#include "mercer/models/predictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <mutex>

#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "mercer/models/function_query.hpp"
#include "mercer/models/log_normal.hpp"
#include "mercer/models/predict_request.hpp"
#include "mercer/models/sampling/mixture.hpp"
#include "mercer/models/scaled_data.hpp"
#include "mercer/planning/variance_plan.hpp"

namespace mercer::models {
struct Predictor::Impl {
  Impl(KernelMachine m, PredictOptions o) : model(std::move(m)), options(std::move(o)) {
    check(options.variance);
    if (!model.draws.empty()) add_draws();
    settle_variances(model, options.variance);
    options.quantiles = settled_quantiles(model, options);
    auto made = make_query(model, options);
    query = std::move(made.query);
    plan = std::move(made.plan);
  }

  bool with_variance() const { return plan.variance != "none"; }
  /// Approximate variances of an exact posterior: their error is measured.
  bool approximate() const {
    return with_variance() && plan.variance != "exact" && !plan.approximate;
  }

  /// Predictors of the draws besides the first, with their share of memory and joint samples.
  void add_draws() {
    const Index count = model.num_draws();
    joint_samples = options.variance.joint_samples;
    options.variance.joint_samples = (joint_samples + count - 1) / count;
    auto method = model.method;
    method.memory = options.memory;
    const double base = planning::base_bytes(model.x.rows(), model.x.cols());
    const double room = planning::memory_budget(method, base) - base;
    options.memory =
        static_cast<std::uint64_t>(std::max(base, base + room / static_cast<double>(count)));
    for (Index i = 1; i < count; ++i)
      others.push_back(std::make_unique<Predictor>(model.draw(i), options));
  }
  /// Those of the first draw become those of all.
  Predictions mix(Predictions first, ConstMatrixView inputs, const ProgressCallback& progress,
                  const data::NoiseColumns& noise) const;
  /// Rows of raw inputs on the scale of the model.
  inference::QueryBlock block(ConstMatrixView inputs) const;
  void add_moments(const inference::Moments& f, Predictions& out) const;
  void to_target_units(Predictions& out) const;
  void add_noise(const data::NoiseColumns& noise, Predictions& out) const;
  void add_gaussian(Predictions& out) const;
  void add_log_normal(Predictions& out) const;
  void add_numbers(Predictions& out) const;
  void add_classes(Predictions& out) const;
  void add_coupled_classes(const Matrix& covariance, Predictions& out) const;
  SdError error_of(Index c, ConstMatrixView sd, const inference::CheckedVariances& checked) const;
  /// The belief about f on the scale of the likelihood.
  struct Belief {
    double mean = 0, variance = 0;
  };
  Belief belief(const Predictions& p, Index i, Index c) const {
    const auto& s = model.scaling;
    return {(p.latent_mean(i, c) - s.target_mean) / s.target_sd,
            p.latent_sd.cols() > 0 ? std::pow(p.latent_sd(i, c) / s.target_sd, 2) : 0.0};
  }

  KernelMachine model;
  PredictOptions options;
  Plan plan;
  std::unique_ptr<inference::Query> query;
  std::vector<std::unique_ptr<Predictor>> others;  // of further draws
  Index joint_samples = 0;                         // of all draws together
  /// A query keeps factors and draws that it makes when they are first needed: one call at a time.
  /// Little is lost, because each call computes on all threads.
  mutable std::mutex query_mutex;
};

inference::QueryBlock Predictor::Impl::block(ConstMatrixView inputs) const {
  inference::QueryBlock out;
  out.x = inputs;
  model.scaling.scale_inputs(out.x);
  check_range("an input on the model's scale", out.x);
  out.prior = model.problem.kernel.diagonal(out.x);
  check_range("the prior variance", out.prior);
  out.basis = model.problem.basis(out.x);
  return out;
}

void Predictor::Impl::add_moments(const inference::Moments& f, Predictions& out) const {
  check_range("the predicted variance", f.variance);
  out.latent_mean = f.mean;
  out.error_bound = f.error_bound;
  out.samples = f.deviations;
  if (with_variance()) out.latent_sd = f.variance.cwiseSqrt();
  out.sd_error_bound = f.sd_error_bound;
  if (plan.approximate && with_variance()) out.sd_error_bound.reset();
  out.clamped_variances = f.clamped;
  out.jitter = f.jitter;
  out.matvecs = f.matvecs;
}

void Predictor::Impl::to_target_units(Predictions& out) const {
  const auto& scaling = model.scaling;
  const Index draws = options.variance.joint_samples;
  out.latent_sd *= scaling.target_sd;
  out.samples *= scaling.target_sd;
  if (out.sd_error_bound) out.sd_error_bound = scaling.unscale_width(*out.sd_error_bound);
  // The estimate of the fit is one for all rows; like the bound it is smaller where little is known
  // from the data.
  const auto& certificate = model.certificate;
  if (certificate.mean_error_estimate)
    out.error_estimate =
        out.error_bound * (certificate.mean_error_bound > 0
                               ? *certificate.mean_error_estimate / certificate.mean_error_bound
                               : 0.0);
  out.error_estimate *= scaling.target_sd;
  // Undoing the scaling rounds too: it matters for targets far from zero.
  constexpr double eps = std::numeric_limits<double>::epsilon();
  for (Index c = 0; c < out.latent_mean.cols(); ++c) {
    auto mean = out.latent_mean.col(c);
    scaling.unscale_target(mean);
    out.samples.middleCols(c * draws, draws).colwise() += mean;
    const Vector rounding = eps * (mean.array().abs() + std::abs(scaling.target_mean));
    if (out.error_bound.size() > 0)
      out.error_bound.col(c) = scaling.target_sd * out.error_bound.col(c) + 2 * rounding;
    if (out.error_estimate.cols() > 0) out.error_estimate.col(c) += rounding;
  }
  check_range("the predicted mean", out.latent_mean);
  check_range("the error bound", out.error_bound);
  check_range("a draw from the posterior", out.samples);
}

// y is f plus noise: the learned one, and what is known of the observation; jitter is not part of
// it. On the scale of the model, before its latent_sd is in target units.
void Predictor::Impl::add_noise(const data::NoiseColumns& noise, Predictions& out) const {
  if (!with_variance()) return;
  const Index m = out.rows();
  const auto observed = row_noise(noise, model.scaling).at(model.problem.noise());
  observed.require_size(m, "predict");
  out.sd_obs = (out.latent_sd.col(0).array().square() + observed.vector(m).array()).sqrt();
  out.sd_obs *= model.scaling.target_sd;
}

void Predictor::Impl::add_gaussian(Predictions& out) const {
  out.mean = out.latent_mean.col(0);
  if (out.error_bound.size() > 0) out.mean_error_bound = out.error_bound.col(0);
  if (out.error_estimate.cols() > 0) out.mean_error_estimate = out.error_estimate.col(0);
  if (!with_variance()) return;
  out.noise_free_sd = out.latent_sd.col(0);
  // Far beyond the quantiles that anyone asks for.
  check_range("the predicted interval", Vector(out.mean.cwiseAbs() + 10 * out.sd_obs));
  const auto quantile = [&](double p) -> Vector {
    return out.mean + boost::math::quantile(boost::math::normal(), p) * out.sd_obs;
  };
  out.q025 = quantile(0.025);
  out.q05 = quantile(0.05);
  out.q95 = quantile(0.95);
  out.q975 = quantile(0.975);
  out.quantiles.resize(out.rows(), static_cast<Index>(options.quantiles.size()));
  for (Index j = 0; j < out.quantiles.cols(); ++j)
    out.quantiles.col(j) = quantile(options.quantiles[static_cast<std::size_t>(j)]);
}

// y = exp(f + noise), f normal: sd_obs is that of log y until here. The mean depends on the
// variance too, whose error counts where it is bounded: sd + d has the variance sd^2 + d (2 sd +
// d). Approximate variances, whose error is measured, are taken as they are.
void Predictor::Impl::add_log_normal(Predictions& out) const {
  const Index m = out.rows();
  const Vector log_sd = with_variance() ? out.sd_obs : Vector::Zero(m);
  const bool bounded = out.error_bound.size() > 0;  // not with an approximation
  out.mean.resize(m);
  if (bounded) out.mean_error_bound.resize(m);
  if (out.error_estimate.cols() > 0) out.mean_error_estimate.resize(m);
  if (with_variance())
    for (Vector* v : {&out.noise_free_sd, &out.q025, &out.q05, &out.q95, &out.q975}) v->resize(m);
  out.quantiles.resize(m, static_cast<Index>(options.quantiles.size()));
  const auto z = [](double p) { return boost::math::quantile(boost::math::normal(), p); };
  for (Index i = 0; i < m; ++i) {
    const LogNormal y{out.latent_mean(i, 0), log_sd(i)};
    out.mean(i) = y.mean();
    const double sd_error = with_variance() ? out.sd_error_bound.value_or(0.0) : 0.0;
    const double sd = with_variance() ? out.latent_sd(i, 0) : 0.0;
    if (bounded)
      out.mean_error_bound(i) =
          y.mean_error(out.error_bound(i, 0) + sd_error * (sd + 0.5 * sd_error));
    if (out.error_estimate.cols() > 0)
      out.mean_error_estimate(i) = y.mean_error(out.error_estimate(i, 0));
    if (!with_variance()) continue;
    out.noise_free_sd(i) = LogNormal{y.mu, out.latent_sd(i, 0)}.sd();
    out.sd_obs(i) = y.sd();
    out.q025(i) = y.at(z(0.025));
    out.q05(i) = y.at(z(0.05));
    out.q95(i) = y.at(z(0.95));
    out.q975(i) = y.at(z(0.975));
    for (Index j = 0; j < out.quantiles.cols(); ++j)
      out.quantiles(i, j) = y.at(z(options.quantiles[static_cast<std::size_t>(j)]));
  }
  out.samples = out.samples.array().exp();
  const auto finite = [](const auto& values, Index i) {
    return values.size() == 0 || values.row(i).allFinite();
  };
  for (Index i = 0; i < m; ++i)
    if (!finite(out.mean_error_bound, i) || !finite(out.sd_obs, i) || !finite(out.quantiles, i) ||
        !finite(out.samples, i))
      throw PredictionOverflow(
          i, fmt::format("the target or its spread, exp of a logarithm of {:.3g} +- {:.3g}, is "
                         "beyond double precision; `variance=none` gives the median, and a fit "
                         "without `log_target` the mean",
                         out.latent_mean(i, 0), log_sd(i)));
}

void Predictor::Impl::add_numbers(Predictions& out) const {
  const Index m = out.rows();
  const auto& likelihood = *model.problem.likelihood;
  out.mean.resize(m);
  out.quantiles.resize(m, static_cast<Index>(options.quantiles.size()));
  if (with_variance())
    for (Vector* v : {&out.sd_obs, &out.q025, &out.q05, &out.q95, &out.q975}) v->resize(m);
  for (Index i = 0; i < m; ++i) {
    const auto [f, v] = belief(out, i, 0);
    const auto moments = likelihood.predictive(f, v);
    if (!std::isfinite(moments.mean) || !std::isfinite(moments.variance))
      throw PredictionOverflow(i,
                               "the predicted mean or variance overflows double precision: the "
                               "inputs of this row lie too far from the training data");
    out.mean(i) = moments.mean;
    if (!with_variance()) continue;
    out.sd_obs(i) = std::sqrt(moments.variance);
    out.q025(i) = likelihood.predictive_quantile(0.025, f, v);
    out.q05(i) = likelihood.predictive_quantile(0.05, f, v);
    out.q95(i) = likelihood.predictive_quantile(0.95, f, v);
    out.q975(i) = likelihood.predictive_quantile(0.975, f, v);
    for (Index j = 0; j < out.quantiles.cols(); ++j) {
      const double p = options.quantiles[static_cast<std::size_t>(j)];
      out.quantiles(i, j) = p == 0.05   ? out.q05(i)
                            : p == 0.95 ? out.q95(i)
                                        : likelihood.predictive_quantile(p, f, v);
    }
  }
  for (auto column : out.quantiles.colwise()) model.scaling.unscale_target(column);
  for (Vector* values : {&out.mean, &out.q025, &out.q05, &out.q95, &out.q975})
    model.scaling.unscale_target(*values);
  out.sd_obs *= model.scaling.target_sd;
}

// Both links are odd around 1/2, so the rarer side is computed and the other is 1 minus it: as 1 -
// p it would be no more than rounding, and its log nothing at all.
void Predictor::Impl::add_classes(Predictions& out) const {
  const Index m = out.rows(), c = out.latent_mean.cols();
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

// The functions of a row are jointly normal; without variances they are known.
void Predictor::Impl::add_coupled_classes(const Matrix& covariance, Predictions& out) const {
  const Index m = out.rows(), c = out.latent_mean.cols();
  const auto& likelihood = *model.problem.likelihood->coupled();
  out.probabilities.resize(m, c);
  out.probability_error = 0;
  Matrix block = Matrix::Zero(c, c);
  for (Index i = 0; i < m; ++i) {
    if (covariance.size() > 0)
      for (Index d = 0; d < c; ++d)
        for (Index j = 0; j < c; ++j) block(j, d) = covariance(i, j + c * d);
    const auto found = likelihood.class_probabilities(out.latent_mean.row(i).transpose(), block);
    out.probabilities.row(i) = found.p;
    if (out.probability_error && found.standard_error)
      out.probability_error = std::max(*out.probability_error, *found.standard_error);
    else
      out.probability_error.reset();
  }
}

Predictor::Predictor(KernelMachine model, PredictOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Predictor::~Predictor() = default;

const KernelMachine& Predictor::model() const { return impl_->model; }
const Plan& Predictor::plan() const { return impl_->plan; }
const std::vector<double>& Predictor::quantiles() const { return impl_->options.quantiles; }

Predictions Predictor::predict(ConstMatrixView inputs, const ProgressCallback& progress,
                               const data::NoiseColumns& noise) const {
  auto sample = row_sample();
  auto out = predict(inputs, sample, progress, noise);
  out.sd_error = sd_error(sample, progress);
  if (out.sd_error) out.matvecs += out.sd_error->matvecs;
  return out;
}

Predictions Predictor::predict(ConstMatrixView inputs, RowSample& sample,
                               const ProgressCallback& callback,
                               const data::NoiseColumns& noise) const {
  const ObservedCall call(callback);
  // The share of the first draw.
  const auto share = 1 / static_cast<double>(impl_->others.size() + 1);
  const ProgressCallback progress = !call.progress() ? ProgressCallback() : [&](Progress now) {
    now.fraction *= share;
    return call.progress()(now);
  };
  const auto& model = impl_->model;
  if (inputs.cols() != model.x.cols())
    throw DimensionMismatch("predict: columns of the inputs", inputs.cols(), "inputs of the model",
                            model.x.cols());
  const auto block = impl_->block(inputs);
  const auto f = [&] {
    const std::lock_guard lock(impl_->query_mutex);
    return impl_->query->moments(block, [&](double done) {
      return progress ? progress({"predict", done, ""}) : Action::proceed;
    });
  }();
  Predictions out;
  impl_->add_moments(f, out);
  if (model.problem.gaussian()) impl_->add_noise(noise, out);
  impl_->to_target_units(out);
  if (model.coupled())
    impl_->add_coupled_classes(f.covariance, out);
  else if (model.classifies())
    impl_->add_classes(out);
  else if (model.schema.log_target)
    impl_->add_log_normal(out);
  else if (model.problem.gaussian())
    impl_->add_gaussian(out);
  else
    impl_->add_numbers(out);
  if (impl_->approximate()) sample.add(inputs, out.latent_sd, out.matvecs);
  return impl_->others.empty() ? out : impl_->mix(std::move(out), inputs, call.progress(), noise);
}

Predictions Predictor::Impl::mix(Predictions first, ConstMatrixView inputs,
                                 const ProgressCallback& progress,
                                 const data::NoiseColumns& noise) const {
  const auto count = static_cast<double>(others.size() + 1);
  std::vector<Predictions> parts;
  parts.push_back(std::move(first));
  MixtureSetting setting{{&model}, options.quantiles, joint_samples};
  for (const auto& other : others) {
    const auto done = static_cast<double>(parts.size());
    const ProgressCallback share = !progress ? ProgressCallback() : [&](Progress now) {
      now.fraction = now.fraction >= 0 ? (done + now.fraction) / count : now.fraction;
      return progress(now);
    };
    auto unchecked = other->row_sample();
    parts.push_back(other->predict(inputs, unchecked, share, noise));
    setting.models.push_back(&other->model());
  }
  return mixed(std::move(parts), setting);
}

RowSample Predictor::row_sample() const {
  const auto& options = impl_->options.variance;
  const Index coupled = impl_->model.coupled() ? impl_->model.num_functions() : 1;
  return {impl_->approximate() ? options.most_checks(coupled) : 0, impl_->model.method.seed};
}

// The error of one function on the rows that were checked.
SdError Predictor::Impl::error_of(Index c, ConstMatrixView sd,
                                  const inference::CheckedVariances& checked) const {
  SdError error;
  for (Index i = 0; i < checked.variance.rows(); ++i) {
    const double variance = checked.variance(i, c);
    const auto open = [&](double less) {
      return model.scaling.unscale_width(inference::sd_excess(variance, less));
    };
    error.add(sd(i, c), model.scaling.unscale_width(std::sqrt(variance)));
    error.check_error = std::max(error.check_error, open(checked.truncated(i, c)));
    error.check_bound = std::max(error.check_bound, open(checked.bound(i, c)));
  }
  return error;
}

std::optional<SdError> Predictor::sd_error(const RowSample& sample,
                                           const ProgressCallback& callback) const {
  if (sample.size() == 0) return {};
  const ObservedCall call(callback);
  const auto& progress = call.progress();
  const auto& model = impl_->model;
  const auto& options = impl_->options.variance;
  const Index count = model.num_functions();
  const Matrix sd = sample.sd();
  const Matrix scaled_sd = sd / model.scaling.target_sd;
  const auto block = impl_->block(sample.inputs());
  inference::CheckedVariances checked;
  for (auto part : {&checked.variance, &checked.truncated, &checked.bound})
    part->resize(sd.rows(), count);
  const auto check = [&](Index first, Index rows) {
    if (rows <= 0) return;
    const std::lock_guard lock(impl_->query_mutex);
    checked.put(
        first, 0,
        impl_->query->check_variances(
            block.rows(first, rows), scaled_sd.middleRows(first, rows), [&](double /*done*/) {
              return progress ? progress({"check variances", -1, ""}) : Action::proceed;
            }));
  };
  const Index first = std::min(options.least_checks(), sample.size());
  check(0, first);
  const planning::CheckedRun run{
      model.problem.kernel, model.x.rows(), model.x.cols(),  {count, model.coupled()}, options,
      impl_->plan,          sample.seen(),  sample.matvecs()};
  const Index more =
      std::min(planning::further_checks(run, first, checked.iterations), sample.size() - first);
  check(first, more);
  for (auto part : {&checked.variance, &checked.truncated, &checked.bound})
    part->conservativeResize(first + more, Eigen::NoChange);
  std::optional<SdError> worst;
  for (Index c = 0; c < count; ++c) {
    const SdError error = impl_->error_of(c, sd, checked);
    if (!worst || error.largest > worst->largest) worst = error;
  }
  worst->predicted = sample.seen();
  worst->matvecs = checked.matvecs;
  return worst;
}

Vector Predictor::log_density(const Predictions& predictions, ConstVectorView target) const {
  if (!predictions.parts.empty()) {
    Matrix of_draws(target.size(), static_cast<Index>(predictions.parts.size()));
    for (std::size_t k = 0; k < predictions.parts.size(); ++k)
      of_draws.col(static_cast<Index>(k)) =
          (k == 0 ? *this : *impl_->others[k - 1]).log_density(predictions.parts[k], target);
    return log_mean_exp(of_draws);
  }
  const auto& model = impl_->model;
  const auto& likelihood = *model.problem.likelihood;
  Vector y = target;
  const bool logarithm = model.schema.log_target;
  for (Index i = 0; i < y.size(); ++i) {
    const auto why = logarithm ? data::log_fault(y(i)) : likelihood.fault(y(i));
    if (why.empty()) continue;
    throw DataError(logarithm
                        ? fmt::format("row {}: {}", i + 1, why)
                        : fmt::format("row {}: the target is {}, but it {}", i + 1, y(i), why));
  }
  if (logarithm) y = y.array().log();
  model.scaling.scale_target(y);
  Vector out(y.size());
  for (Index i = 0; i < y.size(); ++i) {
    const auto [f, v] = impl_->belief(predictions, i, 0);
    out(i) = likelihood.log_predictive(y(i), f, v) - std::log(model.scaling.target_sd) -
             (logarithm ? std::log(target(i)) : 0);
  }
  return out;
}

}  // namespace mercer::models
