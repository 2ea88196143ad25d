#include "mercer/approximations/randomized_svd.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace randomized_svd_test {

using testing::small_gp;

TEST(RandomizedSvd, IsCloseToTheBestOfItsRank) {
  const auto gp = small_gp({.num_points = 150, .lengthscale = 0.7, .kernel = "matern32:iso"});
  const Matrix& k = gp.kernel_operator.matrix();
  const Vector values = Eigen::SelfAdjointEigenSolver<Matrix>(k).eigenvalues();
  const double best = values.head(130).norm();
  const auto result = randomized_svd(gp.kernel_operator, {.rank = 20});
  EXPECT_EQ(result.rank(), 20);
  const Matrix error = k - result.factor * result.factor.transpose();
  // One power iteration and ten columns more: a few percent above the best.
  EXPECT_LE(error.norm(), 1.1 * best);
  EXPECT_NEAR(result.trace_error, error.trace(), 1e-10);
  // The error stays positive semidefinite, to rounding of K.
  EXPECT_GE(Eigen::SelfAdjointEigenSolver<Matrix>(error).eigenvalues()(0), -1e-12 * k.norm());
}

TEST(RandomizedSvd, PowersSharpenIt) {
  const auto gp = small_gp({.num_points = 150, .lengthscale = 0.3, .kernel = "matern12:iso"});
  double before = 1e300;
  for (const Index q : {0, 1, 3}) {
    const auto result =
        randomized_svd(gp.kernel_operator, {.rank = 20, .oversample = 2, .power_iterations = q});
    EXPECT_LT(result.trace_error, before);
    before = result.trace_error;
  }
}

TEST(RandomizedSvd, CountsItsProducts) {
  const auto gp = small_gp({.num_points = 100, .lengthscale = 0.5, .kernel = "matern12:iso"});
  const auto before = gp.kernel_operator.products();
  const RandomizedSvdOptions options{.rank = 20, .power_iterations = 2};
  const auto result = randomized_svd(gp.kernel_operator, options);
  EXPECT_EQ(result.products, 90);
  EXPECT_EQ(result.products, static_cast<double>(gp.kernel_operator.products() - before));
  EXPECT_EQ(result.products, randomized_svd_products(100, options));
}

TEST(RandomizedSvd, AtFullRankIsK) {
  const auto gp = small_gp({.num_points = 40, .lengthscale = 0.3, .kernel = "matern12:iso"});
  const auto result = randomized_svd(gp.kernel_operator, {.rank = 100});
  EXPECT_EQ(result.rank(), 40);
  EXPECT_LE((result.factor * result.factor.transpose() - gp.kernel_operator.matrix()).norm(),
            1e-11);
}

TEST(RandomizedSvd, FindsASmallRankAndSaysWhatItCut) {
  const auto gp = small_gp({.num_points = 60, .kernel = "linear:iso"});
  const auto result = randomized_svd(gp.kernel_operator, {.rank = 10});
  EXPECT_EQ(result.rank(), 2);
  EXPECT_EQ(result.clipped, 8);
  const Matrix& k = gp.kernel_operator.matrix();
  EXPECT_LE((result.factor * result.factor.transpose() - k).norm(), 1e-12 * k.norm());
}

// Small eigenvalues are not lost where the Gram matrix of the columns has none left.
TEST(RandomizedSvd, ReachesBelowTheRootOfRounding) {
  const auto gp = small_gp({.num_points = 80, .num_inputs = 1, .lengthscale = 3});
  const Matrix& k = gp.kernel_operator.matrix();
  const auto result = randomized_svd(gp.kernel_operator, {.rank = 15});
  EXPECT_LE((result.factor * result.factor.transpose() - k).norm(), 1e-12 * k.norm());
}

TEST(RandomizedSvd, OnePointAndBadOptions) {
  const auto gp = small_gp({.num_points = 1});
  EXPECT_NEAR(std::abs(randomized_svd(gp.kernel_operator, {.rank = 5}).factor(0, 0)), 1.0, 1e-15);
  EXPECT_THROW(randomized_svd(gp.kernel_operator, {.rank = 0}), InvalidArgument);
}

TEST(RandomizedSvd, SameBitsOnAnyThreads) {
  const auto gp = small_gp({.num_points = 200, .lengthscale = 0.5});
  std::vector<Matrix> factors;
  for (const int threads : {1, 3}) {
    const testing::WithThreads scope(threads);
    factors.push_back(randomized_svd(gp.kernel_operator, {.rank = 20}).factor);
  }
  EXPECT_TRUE(testing::same_bits(factors[0], factors[1]));
}

}  // namespace randomized_svd_test
}  // namespace mercer::approximations
