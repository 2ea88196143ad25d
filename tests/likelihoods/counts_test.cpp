#include <gtest/gtest.h>

#include <cmath>

#include "mercer/likelihoods/likelihood.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace counts_test {

std::unique_ptr<Likelihood> negative_binomial(double r) {
  auto likelihood = make("negative-binomial");
  likelihood->set_log_parameters(Vector::Constant(1, std::log(r)));
  return likelihood;
}

// scipy.stats.poisson.logpmf(y, exp(f))
TEST(Poisson, MatchesScipy) {
  const auto poisson = make("poisson");
  EXPECT_NEAR(poisson->log_density(0, 0.5).value, -1.6487212707001282, 1e-14);
  EXPECT_NEAR(poisson->log_density(3, 0.5).value, -1.9404807399281832, 1e-14);
  EXPECT_NEAR(poisson->log_density(20, 2.5).value, -4.518110421456958, 1e-13);
  EXPECT_NEAR(poisson->log_density(1000, 7).value, -8.76133691662244, 1e-11);
}

// scipy.stats.nbinom.logpmf(y, r, r / (r + exp(f))), and cdf
TEST(NegativeBinomial, MatchesScipy) {
  EXPECT_NEAR(negative_binomial(1)->log_density(0, 0.5).value, -0.9740769841801067, 1e-14);
  EXPECT_NEAR(negative_binomial(1)->log_density(3, 0.5).value, -2.3963079367204267, 1e-14);
  EXPECT_NEAR(negative_binomial(2.5)->log_density(20, 2.5).value, -3.8593513902185457, 1e-13);
  EXPECT_NEAR(negative_binomial(2.5)->log_density(1000, 7).value, -7.413252476116308, 1e-11);
  EXPECT_NEAR(negative_binomial(2.5)->predictive_cdf(20, 2.5, 0), 0.8497991837822416, 1e-13);
  EXPECT_NEAR(negative_binomial(2.5)->predictive_cdf(1000, 7, 0), 0.5283938600103449, 1e-12);
}

TEST(Poisson, LargeCountsKeepTheirDigits) {
  const auto poisson = make("poisson");
  // At its maximum the density is 1 / sqrt(2 pi y), whatever y is.
  for (const double y : {1e6, 1e10, 1e15})
    EXPECT_NEAR(poisson->log_density(y, std::log(y)).value,
                -0.5 * std::log(2 * std::numbers::pi * y) - 1 / (12 * y), 1e-13);
}

TEST(Poisson, OverflowIsAnHonestInfinity) {
  const auto poisson = make("poisson");
  EXPECT_EQ(poisson->log_density(3, 1e4).value, -INFINITY);
  EXPECT_EQ(poisson->log_density(3, 1e4).first, -INFINITY);
  EXPECT_EQ(poisson->predictive(1e4, 0).variance, INFINITY);
  EXPECT_EQ(poisson->predictive(-1e4, 1).mean, 0);
  EXPECT_EQ(poisson->predictive(-1e4, 1).variance, 0);
  EXPECT_EQ(poisson->predictive(0, 1e4).variance, INFINITY);
  EXPECT_EQ(poisson->predictive_quantile(0.5, 1e4, 1), INFINITY);
  EXPECT_EQ(poisson->predictive_quantile(0.5, -1e4, 1), 0);
}

TEST(Poisson, OffsetIsTheLogOfTheMean) {
  const auto poisson = make("poisson");
  EXPECT_DOUBLE_EQ(poisson->offset(Vector{{1, 2, 6}}), std::log(3));
  EXPECT_DOUBLE_EQ(poisson->offset(Vector::Zero(5)), std::log(0.1));
  EXPECT_EQ(poisson->offset(Vector()), 0);
}

TEST(Poisson, WideBeliefsAboutLargeCounts) {
  const auto poisson = make("poisson");
  // Noise of a hundredth of the belief's width: it adds 1/y to the variance of log y.
  const double y = 1e4, mean = std::log(y) - 0.3;
  const auto given = [&](double f) { return poisson->predictive_cdf(y, f, 0); };
  EXPECT_NEAR(poisson->predictive_cdf(y, mean, 1), testing::brute_average(given, mean, 1, 1000),
              1e-11);
  EXPECT_NEAR(poisson->log_predictive(y, mean, 1),
              testing::brute_log_predictive(*poisson, y, mean, 1, 1000), 1e-10);
}

TEST(Poisson, QuantilesOfLargeCounts) {
  const auto poisson = make("poisson");
  const double y = poisson->predictive_quantile(0.975, 15, 0.25);
  EXPECT_NEAR(std::log(y), 15 + 1.959963984540054 * 0.5, 1e-6);
  EXPECT_GE(poisson->predictive_cdf(y, 15, 0.25), 0.975);
  EXPECT_LT(poisson->predictive_cdf(y - 1, 15, 0.25), 0.975);
}

TEST(NegativeBinomial, BecomesPoisson) {
  const auto poisson = make("poisson");
  const double r = 1e6;
  const auto nb = negative_binomial(r);
  for (const double y : {0.0, 1.0, 7.0, 30.0})
    for (const double f : {-20.0, -1.0, 1.0, 3.0}) {
      SCOPED_TRACE(::testing::Message() << y << " " << f);
      const auto a = nb->log_density(y, f), b = poisson->log_density(y, f);
      const double mu = std::exp(f), next = ((y - mu) * (y - mu) - y) / (2 * r);
      // The difference is `next`, up to third powers over r^2.
      EXPECT_NEAR(a.value - b.value, next, 1e-13 * std::abs(b.value) + 3e4 / (r * r));
      EXPECT_NEAR(a.first, b.first, 1e3 / r);  // mu (mu - y) / r
      ParameterSlope slope;
      nb->parameter_slopes(y, f, {&slope, 1});
      EXPECT_NEAR(slope.value, -next, 1e-4 * std::abs(next) + 1e-16);
    }
  EXPECT_NEAR(nb->predictive_cdf(7, 2, 0.5), poisson->predictive_cdf(7, 2, 0.5), 1e-5);
}

TEST(NegativeBinomial, DispersionStaysExactWhateverItIs) {
  for (const double r : {1e-3, 0.05, 1.0, 300.0, 1e8})
    for (const double y : {0.0, 2.0, 500.0})
      for (const double f : {-30.0, 0.0, 6.0, 40.0, 1e4}) {
        SCOPED_TRACE(::testing::Message() << r << " " << y << " " << f);
        const auto nb = negative_binomial(r);
        const auto d = nb->log_density(y, f);
        for (const double x : {d.value, d.first, d.second, d.third})
          EXPECT_TRUE(std::isfinite(x)) << x;
        ParameterSlope slope;
        nb->parameter_slopes(y, f, {&slope, 1});
        EXPECT_TRUE(std::isfinite(slope.value) && std::isfinite(slope.first) &&
                    std::isfinite(slope.curvature));
        EXPECT_LE(d.value, 0);
      }
}

}  // namespace counts_test
}  // namespace mercer::likelihoods
