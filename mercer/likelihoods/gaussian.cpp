#include "mercer/likelihoods/gaussian.hpp"

#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

constexpr double kStartVariance = 0.1;  // of a target of variance one

double log_normal(double error, double variance) {
  return -0.5 * (detail::log_2pi + std::log(variance) + error * error / variance);
}

class Gaussian final : public Likelihood {
 public:
  explicit Gaussian(double variance) : variance_(variance), log_variance_(std::log(variance)) {}

  std::unique_ptr<Likelihood> clone() const override { return std::make_unique<Gaussian>(*this); }
  std::string text() const override { return "gaussian"; }
  bool scalable() const override { return true; }
  std::optional<double> gaussian_noise() const override { return variance_; }
  std::string fault(double y) const override { return std::isfinite(y) ? "" : "must be finite"; }
  double offset(ConstVectorView y) const override { return y.size() == 0 ? 0 : y.mean(); }

  LogDensity log_density(double y, double f) const override {
    const double error = y - f;
    return {log_normal(error, variance_), error / variance_, -1 / variance_, 0};
  }

  std::vector<std::string> parameter_names() const override { return {"noise_variance"}; }
  Vector log_parameters() const override { return Vector::Constant(1, log_variance_); }
  void set_log_parameters(ConstVectorView theta) override {
    variance_ = detail::only_parameter("gaussian", theta);
    log_variance_ = theta(0);
  }
  void parameter_slopes(double y, double f, std::span<ParameterSlope> out) const override {
    detail::check_one_slope("gaussian", out.size());
    const double error = y - f;
    out[0].value = 0.5 * (error * error / variance_ - 1);
    out[0].first = -error / variance_;
    out[0].curvature = -1 / variance_;
  }

  double log_predictive(double y, double mean, double variance) const override {
    return log_normal(y - mean, variance + variance_);
  }
  Predictive predictive(double mean, double variance) const override {
    return {mean, variance + variance_};
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    return detail::normal_cdf((y - mean) / std::sqrt(variance + variance_));
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    return mean + boost::math::quantile(boost::math::normal(), p) * std::sqrt(variance + variance_);
  }

 protected:
  Predictive moments(double f) const override { return {f, variance_}; }
  double cdf(double y, double f) const override { return predictive_cdf(y, f, 0); }

 private:
  double variance_, log_variance_;
};

}  // namespace

LikelihoodInfo gaussian_info() {
  return {.name = "gaussian",
          .summary = "numbers with normal noise of one variance",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("gaussian", options);
            auto out = std::make_unique<Gaussian>(kStartVariance);
            // The value that its logarithm gives back, so that a copy by parameters is the same.
            out->set_log_parameters(out->log_parameters());
            return out;
          }};
}

std::unique_ptr<Likelihood> make_gaussian(double noise_variance) {
  return std::make_unique<Gaussian>(noise_variance);
}

}  // namespace mercer::likelihoods
