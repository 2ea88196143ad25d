#include <gtest/gtest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace student_t_test {

std::unique_ptr<Likelihood> student_t(const std::string& df, double scale) {
  auto likelihood = make("student-t:df=" + df);
  likelihood->set_log_parameters(Vector::Constant(1, std::log(scale)));
  return likelihood;
}

// scipy.stats.t.logpdf(y, df, f, scale), and cdf
TEST(StudentT, MatchesScipy) {
  EXPECT_NEAR(student_t("4", 0.3)->log_density(0.2, 0.5).value, -0.33471532697131456, 1e-14);
  EXPECT_NEAR(student_t("4", 0.3)->log_density(3, 0.5).value, -7.052443702174731, 1e-13);
  EXPECT_NEAR(student_t("7", 1.5)->log_density(-2, 1).value, -3.167939753651769, 1e-13);
  EXPECT_NEAR(student_t("4", 0.3)->predictive_cdf(3, 0.5, 0), 0.9994334175830343, 1e-14);
  EXPECT_NEAR(student_t("7", 1.5)->predictive_cdf(-2, 1, 0), 0.04280966428148798, 1e-14);
}

TEST(StudentT, NarrowNoiseInAWideBelief) {
  for (const char* df : {"2.1", "4", "30"})
    for (const double scale : {2e-3, 0.05, 1.0})
      for (const double error : {0.0, 0.3, -4.0, 7.0, 30.0}) {
        SCOPED_TRACE(::testing::Message() << df << " " << scale << " " << error);
        const auto t = student_t(df, scale);
        const int nodes = static_cast<int>(std::max(400.0, 20 / scale));
        EXPECT_NEAR(t->log_predictive(0.5 + error, 0.5, 1),
                    testing::brute_log_predictive(*t, 0.5 + error, 0.5, 1, nodes), 1e-10);
      }
}

TEST(StudentT, AWideScaleInANarrowBelief) {
  const auto t = student_t("4", 1);
  // exp(log p) averaged over variance v: p + v p''/2, p'' / p = second + first^2.
  for (const double y : {0.0, 1.0, 50.0}) {
    const double v = 1e-8;
    const auto d = t->log_density(y, 0);
    EXPECT_NEAR(t->log_predictive(y, 0, v), d.value + 0.5 * v * (d.second + d.first * d.first),
                1e-12);
  }
}

TEST(StudentT, FarTailsAreThoseOfTheNoise) {
  const auto t = student_t("4", 0.3);
  // Forty standard deviations of f away only the noise reaches; f widens it by relative 1e-5.
  EXPECT_NEAR(t->log_predictive(4000, 0, 1), t->log_density(4000, 0).value, 1e-5);
  EXPECT_NEAR(t->predictive_cdf(-4000, 0, 1) / t->predictive_cdf(-4000, 0, 0), 1, 1e-5);
  const double y = t->predictive_quantile(1e-13, 0, 1);
  EXPECT_NEAR(t->predictive_cdf(y, 0, 1) / 1e-13, 1, 1e-9);
}

TEST(StudentT, ManyDegreesOfFreedomAreNormal) {
  const auto t = student_t("1e9", 0.5);
  const double variance = 1 + 0.25;
  for (const double y : {0.0, 1.0, 6.0})
    EXPECT_NEAR(t->log_predictive(y, 0, 1),
                -0.5 * (std::log(2 * std::numbers::pi * variance) + y * y / variance), 1e-6);
}

TEST(StudentT, CurvatureIsTheExpectedInformation) {
  const auto t = student_t("4", 0.3);
  // E -second over y, by the same integral as in the laws.
  double sum = 0;
  const double step = 0.005;
  for (double x = -25; x <= 25; x += step) {
    const auto d = t->log_density(0.1 * std::sinh(x), 0);
    sum -= d.second * std::exp(d.value) * 0.1 * std::cosh(x) * step;
  }
  EXPECT_NEAR(t->curvature(7, 0).value, sum, 1e-9 * sum);
  EXPECT_EQ(t->curvature(7, 0).slope, 0);
  EXPECT_GT(t->log_density(7, 0).second, 0);  // the observed one would be negative
  EXPECT_FALSE(t->log_concave());
  EXPECT_TRUE(t->scalable());
}

TEST(StudentT, QuantilesWithoutBeliefAreTheDistributions) {
  const auto t = student_t("4", 0.3);
  for (const double p : {1e-9, 0.025, 0.4, 0.5, 0.8, 0.999})
    EXPECT_NEAR(t->predictive_quantile(p, 2, 0),
                2 + 0.3 * boost::math::quantile(boost::math::students_t(4), p), 1e-9);
}

TEST(StudentT, TheMedianIsTheMean) {
  const auto t = student_t("4", 0.3);
  for (const double v : {0.0, 1.0})
    for (const double p : {std::nextafter(0.5, 0), 0.5, std::nextafter(0.5, 1)})
      EXPECT_NEAR(t->predictive_quantile(p, 2, v), 2, 1e-13);
}

TEST(StudentT, OffsetIsTheMedian) {
  const auto t = make("student-t");
  EXPECT_EQ(t->offset(Vector{{1, 900, 3}}), 3);
  EXPECT_EQ(t->offset(Vector{{1, 900, 3, 4}}), 3.5);
  EXPECT_EQ(t->offset(Vector()), 0);
}

TEST(StudentT, DegreesOfFreedomAreRead) {
  EXPECT_EQ(make("student-t")->text(), "student-t:df=4");
  EXPECT_EQ(make("student-t:df=2.5")->text(), "student-t:df=2.5");
  for (const char* text :
       {"df=2", "df=-4", "df=inf", "df=nan", "df=", "df=4x", "df=4,df=5", "4", "nu=4", "df =4"})
    EXPECT_THROW(make(std::string("student-t:") + text), InvalidArgument) << text;
}

}  // namespace student_t_test
}  // namespace mercer::likelihoods
