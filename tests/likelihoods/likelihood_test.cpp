// What a likelihood gets without writing it: curvature, averages, refusal of parameters.
#include "mercer/likelihoods/likelihood.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/detail/quadrature.hpp"
#include "mercer/likelihoods/detail/special.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace likelihood_test {

using testing::brute_average;
using testing::brute_log_predictive;

/// Waiting times with mean exp(f): only what must be written.
class Exponential final : public Likelihood {
 public:
  explicit Exponential(bool says_concave = true) : says_concave_(says_concave) {}
  std::unique_ptr<Likelihood> clone() const override {
    return std::make_unique<Exponential>(*this);
  }
  std::string text() const override { return "exponential"; }
  bool log_concave() const override { return says_concave_; }
  std::string fault(double y) const override { return y > 0 ? "" : "must be positive"; }
  LogDensity log_density(double y, double f) const override {
    const double u = y * std::exp(-f);
    return {-f - u, u - 1, -u, u};
  }
  double predictive_quantile(double, double, double) const override { return 0; }

 protected:
  Predictive moments(double f) const override { return {std::exp(f), std::exp(2 * f)}; }
  double cdf(double y, double f) const override { return -std::expm1(-y * std::exp(-f)); }

 private:
  bool says_concave_;
};

TEST(Likelihood, CurvatureIsTheObservedInformation) {
  const Exponential likelihood;
  const auto w = likelihood.curvature(3, 1.2);
  EXPECT_EQ(w.value, 3 * std::exp(-1.2));
  EXPECT_EQ(w.slope, -3 * std::exp(-1.2));
}

TEST(Likelihood, AveragesAreExact) {
  const Exponential likelihood;
  for (const double mean : {-3.0, 0.0, 5.0})
    for (const double v : {1e-6, 0.3, 2.0}) {
      const auto found = likelihood.predictive(mean, v);
      EXPECT_NEAR(found.mean / std::exp(mean + v / 2), 1, 1e-12);
      const double variance = 2 * std::exp(2 * (mean + v)) - std::exp(2 * mean + v);
      EXPECT_NEAR(found.variance / variance, 1, 1e-12);
      for (const double y : {1e-3, 1.0, 200.0}) {
        EXPECT_NEAR(likelihood.log_predictive(y, mean, v),
                    brute_log_predictive(likelihood, y, mean, v), 1e-11);
        EXPECT_NEAR(
            likelihood.predictive_cdf(y, mean, v),
            brute_average([&](double f) { return -std::expm1(-y * std::exp(-f)); }, mean, v),
            1e-12);
      }
    }
}

TEST(Likelihood, WithoutConcavityTheAverageIsOverTheWholeGaussian) {
  const Exponential with, without(false);
  for (const double y : {0.1, 4.0})
    EXPECT_NEAR(with.log_predictive(y, 0.5, 2), without.log_predictive(y, 0.5, 2), 1e-11);
}

TEST(Likelihood, WithoutVarianceIsTheDensity) {
  const Exponential likelihood;
  EXPECT_EQ(likelihood.log_predictive(2, 0.3, 0), likelihood.log_density(2, 0.3).value);
  EXPECT_EQ(likelihood.predictive(0.3, 0).mean, std::exp(0.3));
  EXPECT_EQ(likelihood.predictive_cdf(2, 0.3, 0), -std::expm1(-2 * std::exp(-0.3)));
}

TEST(Likelihood, HasNoParametersUnlessItSaysSo) {
  Exponential likelihood;
  EXPECT_EQ(likelihood.log_parameters().size(), 0);
  likelihood.set_log_parameters(Vector());
  EXPECT_THROW(likelihood.set_log_parameters(Vector::Zero(1)), DimensionMismatch);
}

TEST(Quadrature, ResolvesWhatTheFirstGridDoesNot) {
  const double narrow = 1e-3;  // a five-hundredth of the first step
  const auto g = [&](double f) { return 1 / (1 + std::exp((f - 0.7) / narrow)); };
  // The step as the limit, and its curvature: Sommerfeld's expansion, next term 1e-11.
  const double phi = std::exp(-0.245) / std::sqrt(2 * std::numbers::pi);
  const double exact =
      detail::normal_cdf(0.7) - std::pow(std::numbers::pi * narrow, 2) / 6 * 0.7 * phi;
  EXPECT_NEAR(detail::gaussian_average(g, 0, 1), exact, 1e-10);
}

TEST(Special, StirlingErrorsJoinTheirSeries) {
  // On both sides of the change at 16; slopes -1/(12 x^2) and -1/(6 x^3) over 2e-9 are below 1e-11.
  EXPECT_NEAR(detail::stirling_error(16 - 1e-9), detail::stirling_error(16 + 1e-9), 1e-11);
  EXPECT_NEAR(detail::digamma_error(16 - 1e-9), detail::digamma_error(16 + 1e-9), 1e-12);
  // 1 - log(2 pi)/2 and Euler's constant - 1/2.
  EXPECT_NEAR(detail::stirling_error(1), 1 - 0.5 * detail::log_2pi, 1e-15);
  EXPECT_NEAR(detail::digamma_error(1), 0.57721566490153286 - 0.5, 1e-15);
}

}  // namespace likelihood_test
}  // namespace mercer::likelihoods
