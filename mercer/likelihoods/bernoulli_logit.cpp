#include "mercer/likelihoods/bernoulli_logit.hpp"

#include <cmath>

#include "mercer/likelihoods/detail/binary.hpp"
#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

using detail::sigmoid;

class BernoulliLogit final : public Likelihood {
 public:
  std::unique_ptr<Likelihood> clone() const override {
    return std::make_unique<BernoulliLogit>(*this);
  }
  std::string text() const override { return "bernoulli-logit"; }
  bool is_binary() const override { return true; }
  std::string fault(double y) const override { return detail::binary_fault(y); }

  LogDensity log_density(double y, double f) const override {
    const double s = detail::sign_of(y);
    const double w = sigmoid(f) * sigmoid(-f);
    // 1 - 2 p = -tanh(f / 2)
    return {-detail::softplus(-s * f), s * sigmoid(-s * f), -w, w * std::tanh(0.5 * f)};
  }

  // The rarer class by quadrature, the other as what it leaves: both keep all their digits.
  Predictive predictive(double mean, double variance) const override {
    const double rare = std::exp(log_predictive(mean < 0 ? 1 : 0, mean, variance));
    return {mean < 0 ? rare : 1 - rare, rare * (1 - rare)};
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    return detail::binary_cdf(y, predictive(-mean, variance).mean);
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    return detail::binary_quantile(p, predictive(-mean, variance).mean);
  }

 protected:
  Predictive moments(double f) const override { return {sigmoid(f), sigmoid(f) * sigmoid(-f)}; }
  double cdf(double y, double f) const override { return detail::binary_cdf(y, sigmoid(-f)); }
};

}  // namespace

LikelihoodInfo bernoulli_logit_info() {
  return {.name = "bernoulli-logit",
          .summary = "two classes, logistic link",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("bernoulli-logit", options);
            return std::make_unique<BernoulliLogit>();
          }};
}

}  // namespace mercer::likelihoods
