#include "mercer/approximations/pivoted_cholesky.hpp"

#include <gtest/gtest.h>

#include <set>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace pivoted_cholesky_test {

using testing::small_gp;

TEST(PivotedCholesky, MatchesTheTextbookOnADenseMatrix) {
  const auto gp = small_gp({.num_points = 50, .lengthscale = 0.7, .kernel = "matern32:iso"});
  const auto result = pivoted_cholesky(gp.kernel_operator, {.rank = 12});

  // The textbook: eliminate the largest diagonal entry of the residual matrix, twelve times.
  Matrix left = gp.kernel_operator.matrix();
  for (Index step = 0; step < 12; ++step) {
    Index s = 0;
    left.diagonal().maxCoeff(&s);
    EXPECT_EQ(result.pivots[static_cast<std::size_t>(step)], s);
    const Vector g = left.col(s) / std::sqrt(left(s, s));
    left -= g * g.transpose();
  }
  const Matrix error = gp.kernel_operator.matrix() - result.factor * result.factor.transpose();
  EXPECT_LE((error - left).norm(), 1e-12);
  EXPECT_NEAR(result.trace_error, left.trace(), 1e-11);
  EXPECT_NEAR(result.trace, 50, 1e-12);
  EXPECT_EQ(result.columns_evaluated, 12);
}

TEST(PivotedCholesky, ErrorFallsWithTheRankAndVanishesAtFullRank) {
  const auto gp = small_gp({.num_points = 40, .lengthscale = 0.3, .kernel = "matern12:iso"});
  double before = 1e300;
  for (const Index rank : {1, 5, 20, 40}) {
    const auto result = pivoted_cholesky(gp.kernel_operator, {.rank = rank});
    EXPECT_EQ(result.rank(), rank);
    EXPECT_LT(result.trace_error, before);
    before = result.trace_error;
  }
  EXPECT_LE(before, 1e-12 * 40);
}

TEST(PivotedCholesky, StopsAtTheToleranceAsked) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 2});
  const auto result = pivoted_cholesky(gp.kernel_operator, {.rank = 80, .tolerance = 1e-3});
  EXPECT_LE(result.trace_error, 1e-3 * result.trace);
  EXPECT_LT(result.rank(), 80);
  const auto one_less =
      pivoted_cholesky(gp.kernel_operator, {.rank = result.rank() - 1, .tolerance = 1e-3});
  EXPECT_GT(one_less.trace_error, 1e-3 * result.trace);
}

TEST(PivotedCholesky, PassesOverDuplicates) {
  const auto gp = small_gp(
      {.num_points = 40, .lengthscale = 0.2, .kernel = "matern12:iso", .duplicate_points = true});
  const auto result = pivoted_cholesky(gp.kernel_operator, {.rank = 40});
  EXPECT_EQ(result.rank(), 20);
  EXPECT_TRUE(result.exhausted);
  EXPECT_TRUE(result.factor.allFinite());
  EXPECT_LE(result.trace_error, 1e-12 * 40);
  const std::set<Index> distinct(result.pivots.begin(), result.pivots.end());
  EXPECT_EQ(distinct.size(), result.pivots.size());
}

TEST(PivotedCholesky, TiesGoToTheFirstAndThreadsDoNotMatter) {
  const auto gp = small_gp({.num_points = 60, .lengthscale = 0.5});
  std::vector<LowRank> results;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    results.push_back(pivoted_cholesky(gp.kernel_operator, {.rank = 30}));
  }
  EXPECT_EQ(results[0].pivots[0], 0);  // a stationary kernel starts with nothing but ties
  for (const int other : {1, 2}) {
    const auto& result = results[static_cast<std::size_t>(other)];
    EXPECT_EQ(results[0].pivots, result.pivots);
    EXPECT_TRUE(testing::same_bits(results[0].factor, result.factor));
  }
}

TEST(PivotedCholesky, OnePointAndARankAboveN) {
  const auto gp = small_gp({.num_points = 1});
  const auto result = pivoted_cholesky(gp.kernel_operator, {.rank = 100});
  EXPECT_EQ(result.rank(), 1);
  EXPECT_DOUBLE_EQ(result.factor(0, 0), 1.0);
  EXPECT_THROW(pivoted_cholesky(gp.kernel_operator, {.rank = 0}), InvalidArgument);
}

}  // namespace pivoted_cholesky_test
}  // namespace mercer::approximations
