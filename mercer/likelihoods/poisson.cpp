#include "mercer/likelihoods/poisson.hpp"

#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "mercer/likelihoods/detail/counts.hpp"
#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

constexpr double kNoDispersion = std::numeric_limits<double>::infinity();

class Poisson final : public Likelihood {
 public:
  std::unique_ptr<Likelihood> clone() const override { return std::make_unique<Poisson>(*this); }
  std::string text() const override { return "poisson"; }
  std::string fault(double y) const override { return detail::count_fault(y); }
  double offset(ConstVectorView y) const override { return detail::count_offset(y); }

  LogDensity log_density(double y, double f) const override {
    const double mu = std::exp(f);
    return {detail::count_log_density(y, f, kNoDispersion), y - mu, -mu, -mu};
  }

  Predictive predictive(double mean, double variance) const override {
    return detail::count_predictive(mean, variance, kNoDispersion);
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    y = std::floor(y);
    if (y >= 0 && std::isfinite(y) && std::sqrt(variance) > detail::count_width(y, kNoDispersion))
      return detail::wide_count_cdf(y, mean, variance, kNoDispersion);
    return Likelihood::predictive_cdf(y, mean, variance);
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    return detail::count_quantile([&](double y) { return predictive_cdf(y, mean, variance); }, p,
                                  detail::count_guess(p, mean, variance, kNoDispersion));
  }

 protected:
  Predictive moments(double f) const override { return {std::exp(f), std::exp(f)}; }
  double cdf(double y, double f) const override {
    if (y < 0) return 0;
    const double mu = std::exp(f);
    if (mu == 0 || std::isinf(y)) return 1;
    return std::isinf(mu) ? 0 : boost::math::gamma_q(std::floor(y) + 1, mu, detail::Policy());
  }
};

}  // namespace

LikelihoodInfo poisson_info() {
  return {.name = "poisson",
          .summary = "counts, log link",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("poisson", options);
            return std::make_unique<Poisson>();
          }};
}

}  // namespace mercer::likelihoods
