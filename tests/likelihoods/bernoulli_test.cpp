#include <gtest/gtest.h>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "mercer/likelihoods/likelihood.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace bernoulli_test {

using Digits = boost::multiprecision::cpp_bin_float_100;

// log Phi(x) and derivatives by their definitions, with digits enough to lose seventy.
LogDensity precise_log_normal_cdf(double at) {
  const Digits x = at;
  const Digits root = sqrt(Digits(2)), pi = boost::math::constants::pi<Digits>();
  const Digits lower = erfc(-x / root) / 2;
  const Digits r = exp(-x * x / 2) / sqrt(2 * pi) / lower;
  const Digits second = -r * (x + r), third = r * ((x + r) * (x + 2 * r) - 1);
  const Digits value = at > 0 ? Digits(log1p(-erfc(x / root) / 2)) : Digits(log(lower));
  return {static_cast<double>(value), static_cast<double>(r), static_cast<double>(second),
          static_cast<double>(third)};
}

TEST(BernoulliProbit, TailsKeepTheirDigits) {
  const auto probit = make("bernoulli-probit");
  for (const double x : {-1e4, -3e3, -200.0, -38.0, -10.0, -4.0, -3.0001, -2.9999, -2.0, -1.0, -0.1,
                         0.0, 0.5, 3.0, 9.0, 30.0}) {
    SCOPED_TRACE(x);
    const auto exact = precise_log_normal_cdf(x), found = probit->log_density(1, x);
    // exp(-x^2/2) has the rounding of its exponent.
    const double tolerance = 4e-15 * (1 + (x > 0 ? x * x : 0));
    EXPECT_NEAR(found.value / exact.value, 1, tolerance);
    EXPECT_NEAR(found.first / exact.first, 1, tolerance);
    EXPECT_NEAR(found.second / exact.second, 1, 4 * tolerance);
    // At -3 the definition still loses two digits.
    EXPECT_NEAR(found.third / exact.third, 1, 200 * tolerance);
  }
}

TEST(BernoulliProbit, FarTailFollowsItsAsymptote) {
  const auto probit = make("bernoulli-probit");
  for (const double t : {1e5, 1e7, 1e30}) {
    const auto d = probit->log_density(1, -t);
    EXPECT_DOUBLE_EQ(d.first, t + 1 / t);
    EXPECT_NEAR(-d.second, 1, 1e-9);  // 1 - 1/t^2
    EXPECT_LE(-d.second, 1);
    EXPECT_NEAR(d.third * t * t * t / 2, 1, 1e-8);
  }
}

// scipy.special.log_ndtr(x)
TEST(BernoulliProbit, MatchesScipy) {
  const auto probit = make("bernoulli-probit");
  EXPECT_NEAR(probit->log_density(1, -1).value, -1.841021645009264, 1e-14);
  EXPECT_NEAR(probit->log_density(0, 3).value, -6.60772622151035, 1e-13);
  EXPECT_NEAR(probit->log_density(1, -10).value, -53.23128515051248, 1e-12);
  EXPECT_NEAR(probit->log_density(1, -40).value, -804.6084420137539, 1e-11);
  EXPECT_NEAR(probit->log_density(1, 3).value, -0.001350809964748193, 1e-17);
}

TEST(BernoulliLogit, IsExactFarOut) {
  const auto logit = make("bernoulli-logit");
  EXPECT_EQ(logit->log_density(1, -1e4).value, -1e4);
  EXPECT_EQ(logit->log_density(0, 1e4).value, -1e4);
  EXPECT_EQ(logit->log_density(1, 1e4).value, 0);
  EXPECT_EQ(logit->log_density(1, -1e4).first, 1);
  EXPECT_DOUBLE_EQ(logit->log_density(1, 50).value, -std::exp(-50));
  EXPECT_DOUBLE_EQ(logit->curvature(1, 50).value, std::exp(-50));
  EXPECT_DOUBLE_EQ(logit->curvature(1, 50).slope, -std::exp(-50));
}

// quad(lambda z: expit(m + sqrt(v) z) norm.pdf(z), -12, 12, epsabs=1e-15, points=[-m / sqrt(v)])
TEST(BernoulliLogit, MatchesScipy) {
  const auto logit = make("bernoulli-logit");
  EXPECT_NEAR(logit->predictive(1, 4).mean, 0.6477264385258686, 1e-13);
  EXPECT_NEAR(logit->predictive(-3, 25).mean, 0.28604449589569353, 1e-13);
  EXPECT_NEAR(logit->predictive(10, 25).mean, 0.9699193242162082, 1e-13);
}

TEST(BernoulliLogit, WideBeliefsAreIntegratedToo) {
  const auto logit = make("bernoulli-logit");
  for (const double mean : {-10.0, -3.0, 0.0, 0.1, 10.0})
    for (const double variance : {25.0, 400.0, 1e4}) {
      const auto p = [](double f) { return 1 / (1 + std::exp(-f)); };
      EXPECT_NEAR(logit->predictive(mean, variance).mean,
                  testing::brute_average(p, mean, variance, 2000), 1e-12)
          << mean << " " << variance;
    }
}

TEST(BernoulliLogit, SmallProbabilitiesKeepTheirDigits) {
  const auto logit = make("bernoulli-logit");
  // Far out the logistic function is exp(f), whose average is exp(mean + variance/2).
  EXPECT_NEAR(logit->predictive(-100, 4).mean / std::exp(-98), 1, 1e-11);
  EXPECT_NEAR(logit->log_predictive(1, -1000, 4), -998, 1e-10);
}

TEST(Bernoulli, ClassesAreMirrorImages) {
  for (const char* name : {"bernoulli-logit", "bernoulli-probit"}) {
    const auto likelihood = make(name);
    EXPECT_EQ(likelihood->log_density(0, 1.3).value, likelihood->log_density(1, -1.3).value);
    EXPECT_NEAR(likelihood->predictive(1.3, 2).mean + likelihood->predictive(-1.3, 2).mean, 1,
                1e-15);
    EXPECT_EQ(likelihood->predictive_quantile(0.3, 0, 1), 0);
    EXPECT_EQ(likelihood->predictive_quantile(0.7, 0, 1), 1);
    EXPECT_TRUE(likelihood->is_binary());
  }
}

}  // namespace bernoulli_test
}  // namespace mercer::likelihoods
