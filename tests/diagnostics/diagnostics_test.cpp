// Diagnostics of chains against what is known of the process; tests/peers compares every number
// with R's coda and posterior.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/diagnostics/autocorrelation.hpp"
#include "mercer/diagnostics/chains.hpp"
#include "mercer/diagnostics/summary.hpp"

namespace mercer::diagnostics {
namespace diagnostics_test {

Matrix autoregressive(Index iterations, Index chains, double rho, std::uint64_t seed) {
  Matrix x(iterations, chains);
  Rng(seed, "chains").fill_normal(x);
  const double step = std::sqrt(1 - rho * rho);
  for (Index i = 1; i < iterations; ++i) x.row(i) = rho * x.row(i - 1) + step * x.row(i);
  return x;
}

TEST(Diagnostics, EffectiveSizeIsThatOfTheProcess) {
  const Index n = 20000, chains = 4;
  for (const double rho : {0.0, 0.5, 0.9}) {
    const Matrix x = autoregressive(n, chains, rho, 3);
    const double truth = static_cast<double>(n * chains) * (1 - rho) / (1 + rho);
    // The relative standard deviation of these estimates is below 4 % here, over seeds.
    EXPECT_NEAR(ess_mean(x) / truth, 1, 0.15) << rho;
    EXPECT_NEAR(ess_bulk(x) / truth, 1, 0.15) << rho;
    EXPECT_NEAR(effective_size(x) / truth, 1, 0.15) << rho;
    EXPECT_NEAR(mcse_mean(x) * std::sqrt(truth), 1, 0.15) << rho;
    EXPECT_LT(rhat(x), 1.01) << rho;
    EXPECT_LT(gelman_rubin(x)->estimate, 1.01) << rho;
    EXPECT_NEAR(autocorrelation(x.col(0), 1)(1), rho, 0.05) << rho;
  }
}

TEST(Diagnostics, AnAutoregressionIsFound) {
  const auto fit = autoregression(autoregressive(50000, 1, 0.8, 5).col(0));
  ASSERT_GE(fit.coefficients.size(), 1);
  EXPECT_NEAR(fit.coefficients(0), 0.8, 0.03);       // standard error 0.0045
  EXPECT_NEAR(fit.innovation_variance, 0.36, 0.02);  // 1 - 0.8^2; standard error 0.0023
  EXPECT_NEAR(fit.spectrum_at_zero / (0.36 / 0.04), 1, 0.2);
}

TEST(Diagnostics, SaysWhenChainsDisagree) {
  Matrix x = autoregressive(500, 4, 0.3, 6);
  x.col(2).array() += 2;
  EXPECT_GT(rhat(x), 1.1);
  EXPECT_GT(gelman_rubin(x)->estimate, 1.1);
  EXPECT_GT(gelman_rubin(x)->upper, gelman_rubin(x)->estimate);
  EXPECT_LT(ess_bulk(x), 30);
}

TEST(Diagnostics, OneChainHasNoClassicFactor) {
  const auto s = summarise(autoregressive(300, 1, 0.5, 7));
  EXPECT_FALSE(s.psrf);
  EXPECT_TRUE(std::isfinite(s.rhat));
}

TEST(Diagnostics, WhatSaysNothingIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Matrix broken = autoregressive(100, 2, 0.1, 8);
  broken(17, 1) = nan;
  Matrix endless = autoregressive(100, 2, 0.1, 8);
  endless(17, 1) = std::numeric_limits<double>::infinity();
  for (const Matrix& x : {broken, Matrix(Matrix::Constant(100, 2, 0.3))}) {
    const auto s = summarise(x);
    for (const double value : {s.rhat, s.ess_bulk, s.ess_tail, s.ess_mean, s.mcse_mean, s.mcse_q05})
      EXPECT_TRUE(std::isnan(value));
    ASSERT_TRUE(s.psrf);
    EXPECT_TRUE(std::isnan(s.psrf->estimate));
  }
  EXPECT_TRUE(std::isnan(summarise(broken).effective_size));
  EXPECT_EQ(summarise(Matrix::Constant(100, 2, 0.3)).effective_size, 0);
  EXPECT_TRUE(std::isnan(ess_mean(endless)));
  EXPECT_TRUE(std::isfinite(rhat(endless)));  // a rank like others
  for (Index n = 1; n < 4; ++n) EXPECT_TRUE(std::isnan(rhat(Matrix(broken.topRows(n))))) << n;
  EXPECT_THROW(summarise(Matrix(0, 2)), InvalidArgument);
  EXPECT_THROW(ess_quantile(broken, 1.5), InvalidArgument);
}

TEST(Diagnostics, TheRunningMeanIsThatOfTheFirstDraws) {
  const Matrix x = autoregressive(40, 1, 0.5, 9);
  const auto running = running_mean(x.col(0));
  for (const Index n : {2, 7, 40}) {
    const Vector first = x.col(0).head(n);
    const double mean = first.mean();
    EXPECT_NEAR(running.mean(n - 1), mean, 1e-14);
    EXPECT_NEAR(running.sd(n - 1),
                std::sqrt((first.array() - mean).square().sum() / static_cast<double>(n - 1)),
                1e-13);
  }
  EXPECT_EQ(running.sd(0), 0);
}

TEST(Diagnostics, TheJointFactorIsThatOfTheWorstCombination) {
  const Matrix a = autoregressive(200, 3, 0.4, 10), b = autoregressive(200, 3, 0.2, 11);
  const auto joint = multivariate_gelman_rubin({a, b});
  ASSERT_TRUE(joint);
  // Any linear change of the parameters leaves it.
  EXPECT_NEAR(*multivariate_gelman_rubin({a + 3 * b, 2 * a - b}), *joint, 1e-10);
}

}  // namespace diagnostics_test
}  // namespace mercer::diagnostics
