#include "mercer/likelihoods/bernoulli_probit.hpp"

#include <cmath>
#include <numbers>

#include "mercer/likelihoods/detail/binary.hpp"
#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

using detail::normal_cdf;

// log Phi(x) for x = -t < -3. With r = phi / Phi,
//   r = t + d,  d = 1/(t + c2),  c2 = 2/(t + c3),  c3 = 3/(t + c4), ...
// and in these letters no derivative is a difference of nearly equal numbers:
//   (log Phi)''  = -r (x + r)                   = -r d
//   (log Phi)''' = r ((x + r)(x + 2 r) - 1)     = r d^2 c2 (c3 - c2).
LogDensity lower_tail(double t) {
  // So many terms, and for the rest the c that solves c = k/(t + c), leave less than rounding.
  const int terms = 12 + static_cast<int>(400 / (t * t));
  double c = 0.5 * (std::sqrt(t * t + 4.0 * terms) - t);
  for (int k = terms; k > 3; --k) c = k / (t + c);
  const double c3 = 3 / (t + c), c2 = 2 / (t + c3), d = 1 / (t + c2), r = t + d;
  return {-0.5 * t * t - 0.5 * detail::log_2pi - std::log(r), r, -r * d,
          r * d * d * c2 * (c3 - c2)};
}

/// log Phi(x) and its derivatives.
LogDensity log_normal_cdf(double x) {
  if (x < -3) return lower_tail(-x);
  const double upper = normal_cdf(-x), lower = normal_cdf(x);
  const double value = x > 0 ? std::log1p(-upper) : std::log(lower);
  const double r = std::exp(-0.5 * x * x - 0.5 * detail::log_2pi) / lower;
  // From x = 38 on r is 0; x^2 r is then 0 as well, but x^2 may be infinite.
  if (r == 0) return {value, 0, 0, 0};
  return {value, r, -r * (x + r), r * ((x + r) * (x + 2 * r) - 1)};
}

class BernoulliProbit final : public Likelihood {
 public:
  std::unique_ptr<Likelihood> clone() const override {
    return std::make_unique<BernoulliProbit>(*this);
  }
  std::string text() const override { return "bernoulli-probit"; }
  bool is_binary() const override { return true; }
  std::string fault(double y) const override { return detail::binary_fault(y); }

  LogDensity log_density(double y, double f) const override {
    const double s = detail::sign_of(y);
    const auto d = log_normal_cdf(s * f);
    return {d.value, s * d.first, d.second, s * d.third};
  }

  double log_predictive(double y, double mean, double variance) const override {
    return log_normal_cdf(detail::sign_of(y) * mean / std::sqrt(1 + variance)).value;
  }
  Predictive predictive(double mean, double variance) const override {
    return moments(mean / std::sqrt(1 + variance));
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    return cdf(y, mean / std::sqrt(1 + variance));
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    return detail::binary_quantile(p, predictive(-mean, variance).mean);
  }

 protected:
  Predictive moments(double f) const override {
    return {normal_cdf(f), normal_cdf(f) * normal_cdf(-f)};
  }
  double cdf(double y, double f) const override { return detail::binary_cdf(y, normal_cdf(-f)); }
};

}  // namespace

LikelihoodInfo bernoulli_probit_info() {
  return {.name = "bernoulli-probit",
          .summary = "two classes, normal link",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("bernoulli-probit", options);
            return std::make_unique<BernoulliProbit>();
          }};
}

}  // namespace mercer::likelihoods
