#include "mercer/likelihoods/negative_binomial.hpp"

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/log1p.hpp>
#include <cmath>

#include "mercer/likelihoods/detail/counts.hpp"
#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

class NegativeBinomial final : public Likelihood {
 public:
  std::unique_ptr<Likelihood> clone() const override {
    return std::make_unique<NegativeBinomial>(*this);
  }
  std::string text() const override { return "negative-binomial"; }
  std::string fault(double y) const override { return detail::count_fault(y); }
  double offset(ConstVectorView y) const override { return detail::count_offset(y); }

  LogDensity log_density(double y, double f) const override {
    const auto [p, q] = shares(f);
    const double w = (y + r_) * p * q;
    return {detail::count_log_density(y, f, r_), y * p - r_ * q, -w, -w * (p - q)};
  }

  std::vector<std::string> parameter_names() const override { return {"dispersion"}; }
  Vector log_parameters() const override { return Vector::Constant(1, log_r_); }
  void set_log_parameters(ConstVectorView theta) override {
    r_ = detail::only_parameter("negative-binomial", theta);
    log_r_ = theta(0);
  }

  // d log p / dr = digamma(n) - digamma(r) - log((r + mu) / r) - u,
  //   n = r + y,  u = (y - mu) / (r + mu),
  // in which all but O(1/r^2) cancels as r grows. Leading terms are taken together:
  //   log(1 + u) - u + y / (2 r n) + digamma_error(r) - digamma_error(n).
  void parameter_slopes(double y, double f, std::span<ParameterSlope> out) const override {
    detail::check_one_slope("negative-binomial", out.size());
    const auto [p, q] = shares(f);
    const double n = r_ + y, u = y / r_ * p - q;
    const double log_less_u = std::abs(u) < 0.5
                                  ? boost::math::log1pmx(u, detail::Policy())
                                  : std::log(n / r_) - detail::softplus(f - log_r_) - u;
    const double errors = detail::digamma_error(r_) - detail::digamma_error(n);
    out[0].value = r_ * (log_less_u + errors) + 0.5 * y / n;
    out[0].first = u * r_ * q;
    out[0].curvature = n * p * q * (2 * q - y / n);
  }

  Predictive predictive(double mean, double variance) const override {
    return detail::count_predictive(mean, variance, r_);
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    y = std::floor(y);
    if (y >= 0 && std::isfinite(y) && std::sqrt(variance) > detail::count_width(y, r_))
      return detail::wide_count_cdf(y, mean, variance, r_);
    return Likelihood::predictive_cdf(y, mean, variance);
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    return detail::count_quantile([&](double y) { return predictive_cdf(y, mean, variance); }, p,
                                  detail::count_guess(p, mean, variance, r_));
  }

 protected:
  Predictive moments(double f) const override { return detail::count_predictive(f, 0, r_); }
  double cdf(double y, double f) const override {
    if (y < 0) return 0;
    if (std::isinf(y)) return 1;
    const auto [p, q] = shares(f);
    const double z = std::floor(y) + 1;
    return p < q ? boost::math::ibeta(r_, z, p, detail::Policy())
                 : boost::math::ibetac(z, r_, q, detail::Policy());
  }

 private:
  struct Shares {
    double p, q;  // r/(r + mu), mu/(r + mu)
  };
  Shares shares(double f) const {
    return {detail::sigmoid(log_r_ - f), detail::sigmoid(f - log_r_)};
  }

  double r_ = 1, log_r_ = 0;
};

}  // namespace

LikelihoodInfo negative_binomial_info() {
  return {.name = "negative-binomial",
          .summary = "counts that scatter more than Poisson's, log link",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("negative-binomial", options);
            return std::make_unique<NegativeBinomial>();
          }};
}

}  // namespace mercer::likelihoods
