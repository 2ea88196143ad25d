#include "mercer/approximations/rpcholesky.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace rpcholesky_test {

using testing::small_gp;

/// What is left of a dense matrix after eliminating one point.
Matrix eliminated(const Matrix& a, Index s) { return a - a.col(s) * a.row(s) / a(s, s); }

/// One draw at a time, on the dense residual: the definition.
double sequential_trace_error(const Matrix& k, Index rank, std::uint64_t seed) {
  Matrix left = k;
  Rng rng(seed, "sequential");
  for (Index step = 0; step < rank; ++step) {
    double draw = rng.uniform() * left.trace();
    Index s = 0;
    while (s + 1 < k.rows() && (draw -= left(s, s)) >= 0) ++s;
    left = eliminated(left, s);
  }
  return left.trace();
}

TEST(RpCholesky, FirstTwoPivotsHaveTheExactLaw) {
  const Index n = 6, draws = 20000;
  // The linear term makes the diagonal, and so the first probabilities, unequal.
  const auto gp =
      small_gp({.num_points = n, .lengthscale = 0.8, .kernel = "matern32:iso + linear:iso"});
  Matrix count = Matrix::Zero(n, n);
  for (Index seed = 0; seed < draws; ++seed) {
    const auto result = rpcholesky(
        gp.kernel_operator, {.rank = 2, .block = 8, .seed = static_cast<std::uint64_t>(seed)});
    count(result.pivots[0], result.pivots[1]) += 1;
  }
  const Matrix& k = gp.kernel_operator.matrix();
  double chi_square = 0;
  for (Index i = 0; i < n; ++i) {
    const Matrix left = eliminated(k, i);
    for (Index j = 0; j < n; ++j) {
      if (i == j) continue;
      const double expected = draws * k(i, i) / k.trace() * left(j, j) / left.trace();
      ASSERT_GT(expected, 5);
      chi_square += std::pow(count(i, j) - expected, 2) / expected;
    }
  }
  EXPECT_EQ(count.trace(), 0);
  // 30 cells, 29 degrees of freedom: exceeded by chance once in a million seeds.
  EXPECT_LE(chi_square, 80.4);
}

TEST(RpCholesky, MeanTraceErrorIsThatOfOneDrawAtATime) {
  const Index runs = 400, rank = 15;
  const auto gp = small_gp({.num_points = 50, .lengthscale = 0.7, .kernel = "matern32:iso"});
  double blocked = 0, sequential = 0, square = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    blocked +=
        rpcholesky(gp.kernel_operator, {.rank = rank, .block = 12, .seed = seed}).trace_error;
    const double error = sequential_trace_error(gp.kernel_operator.matrix(), rank, seed);
    sequential += error;
    square += error * error;
  }
  const double variance = square / runs - std::pow(sequential / runs, 2);
  // Five standard errors of the difference of two means: by chance once in a million.
  EXPECT_NEAR(blocked / runs, sequential / runs, 5 * std::sqrt(2 * variance / runs));
}

TEST(RpCholesky, IsExactInItsPivotsAndKnowsItsTraceError) {
  const auto gp = small_gp({.num_points = 150, .lengthscale = 0.7, .kernel = "matern32:iso"});
  const auto result = rpcholesky(gp.kernel_operator, {.rank = 40, .block = 16, .seed = 1});
  ASSERT_EQ(result.rank(), 40);
  const Matrix error = gp.kernel_operator.matrix() - result.factor * result.factor.transpose();
  for (const Index s : result.pivots) EXPECT_LE(error.col(s).norm(), 1e-11);
  // Sums of 150 entries of size 1.
  EXPECT_NEAR(result.trace_error, error.trace(), 1e-11);
  EXPECT_NEAR(result.trace, 150, 1e-11);
  EXPECT_EQ(result.columns_evaluated, 40);
  EXPECT_FALSE(result.exhausted);
}

TEST(RpCholesky, FullRankIsExact) {
  const auto gp = small_gp({.num_points = 40, .lengthscale = 0.3, .kernel = "matern12:iso"});
  const auto result = rpcholesky(gp.kernel_operator, {.rank = 1000});
  EXPECT_EQ(result.rank(), 40);
  EXPECT_LE(result.trace_error, 1e-12 * 40);
  const Matrix& k = gp.kernel_operator.matrix();
  EXPECT_LE((k - result.factor * result.factor.transpose()).norm(), 1e-12 * k.norm());
}

TEST(RpCholesky, PassesOverDuplicates) {
  const auto gp = small_gp(
      {.num_points = 40, .lengthscale = 0.2, .kernel = "matern12:iso", .duplicate_points = true});
  const auto result = rpcholesky(gp.kernel_operator, {.rank = 40});
  EXPECT_EQ(result.rank(), 20);
  EXPECT_TRUE(result.exhausted);
  EXPECT_TRUE(result.factor.allFinite());
  EXPECT_LE(result.trace_error, 1e-12 * 40);
  const std::set<Index> distinct(result.pivots.begin(), result.pivots.end());
  EXPECT_EQ(distinct.size(), result.pivots.size());
}

TEST(RpCholesky, GrowsInSteps) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 0.5, .kernel = "matern52:iso"});
  RpCholesky f(gp.kernel_operator, {.rank = 5, .block = 16, .seed = 3});
  EXPECT_EQ(f.rank(), 0);
  double before = f.residual_trace();
  EXPECT_NEAR(before, 80, 1e-12);
  for (const Index more : {5, 12, 1, 20}) {
    EXPECT_EQ(f.grow(more), more);
    EXPECT_LT(f.residual_trace(), before);
    before = f.residual_trace();
  }
  const Matrix error = gp.kernel_operator.matrix() - f.factor() * f.factor().transpose();
  EXPECT_NEAR(error.trace(), f.residual_trace(), 1e-11);
  EXPECT_LE((error.diagonal() - f.residual()).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_EQ(f.grow(1000), 80 - 38);
  EXPECT_EQ(f.grow(10), 0);
  EXPECT_GE(f.proposals(), 80);
}

TEST(RpCholesky, StopsAtTheToleranceAsked) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 2});
  const auto result =
      rpcholesky(gp.kernel_operator, {.rank = 80, .block = 8, .tolerance = 1e-3, .seed = 2});
  EXPECT_LE(result.trace_error, 1e-3 * result.trace);
  EXPECT_LT(result.rank(), 80);
  EXPECT_FALSE(result.exhausted);
}

TEST(RpCholesky, SmoothKernelsEndBeforeTheRankAsked) {
  const auto gp = small_gp({.num_points = 200, .lengthscale = 5});
  const auto result = rpcholesky(gp.kernel_operator, {.rank = 200});
  EXPECT_TRUE(result.exhausted);
  EXPECT_LT(result.rank(), 120);
  const Matrix& k = gp.kernel_operator.matrix();
  // What is passed over is below 16 eps at each of 200 points, times the growth of rounding.
  EXPECT_LE((k - result.factor * result.factor.transpose()).norm(), 1e-11 * k.norm());
}

TEST(RpCholesky, ThreadsDoNotMatterButTheSeedDoes) {
  const auto gp = small_gp({.num_points = 60, .lengthscale = 0.5});
  std::vector<LowRank> results;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    results.push_back(rpcholesky(gp.kernel_operator, {.rank = 30, .seed = 5}));
  }
  for (const auto& result : results) {
    EXPECT_EQ(results[0].pivots, result.pivots);
    EXPECT_TRUE(testing::same_bits(results[0].factor, result.factor));
  }
  EXPECT_NE(rpcholesky(gp.kernel_operator, {.rank = 30, .seed = 6}).pivots, results[0].pivots);
}

TEST(RpCholesky, OnePointAndBadOptions) {
  const auto gp = small_gp({.num_points = 1});
  const auto result = rpcholesky(gp.kernel_operator, {.rank = 100});
  EXPECT_EQ(result.rank(), 1);
  EXPECT_DOUBLE_EQ(result.factor(0, 0), 1.0);
  EXPECT_THROW(rpcholesky(gp.kernel_operator, {.rank = 0}), InvalidArgument);
  EXPECT_THROW(rpcholesky(gp.kernel_operator, {.block = 0}), InvalidArgument);
}

// Every variance is a number, their sum is not: nothing could be drawn in proportion to them.
TEST(RpCholesky, VariancesTooLargeToAddUpAreRefused) {
  const auto gp = small_gp({.num_points = 30});
  auto kernel = gp.kernel_operator.kernel();
  kernel.set_all_variances(1e308);
  const testing::ReferenceKernelOperator k(kernel, gp.kernel_operator.points());
  EXPECT_THROW(rpcholesky(k, {.rank = 5}), InvalidArgument);
}

// With weights it is the same method on W^1/2 K W^1/2, whose factor is W^1/2 F.
TEST(RpCholesky, WeightsScaleTheKernel) {
  const auto gp = small_gp({.num_points = 120, .kernel = "matern32:iso"});
  const Matrix& k = gp.kernel_operator.matrix();
  Vector w = Vector::Ones(120);
  w.head(20).setConstant(1e6);
  RpCholesky f(gp.kernel_operator, {.rank = 15, .seed = 3, .weights = w});
  f.grow(15);
  for (const Index pivot : f.pivots()) EXPECT_LT(pivot, 20);
  const Matrix left = k - f.factor() * f.factor().transpose();
  EXPECT_NEAR(f.residual_trace(), left.diagonal().dot(w), 1e-9 * f.trace());
  EXPECT_NEAR(f.trace(), k.diagonal().dot(w), 1e-12 * f.trace());
  EXPECT_THROW(RpCholesky(gp.kernel_operator, {.weights = Vector::Ones(3)}), DimensionMismatch);
}

}  // namespace rpcholesky_test
}  // namespace mercer::approximations
