#include "mercer/approximations/neighbours.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace neighbours_test {

using kernels::Kernel;
using testing::random_matrix;

Kernel kernel(std::string_view text, Index d, double lengthscale) {
  auto k = Kernel::parse(text, d);
  k.set_all_lengthscales(lengthscale);
  return k;
}

/// R, from its definition.
Matrix dense_residual(const Kernel& k, const Matrix& x, double noise, const Matrix& f) {
  Matrix r = k.reference_matrix(x, x) - f * f.transpose();
  r.diagonal().array() += noise;
  return r;
}

double correlation(const Matrix& r, Index i, Index j) {
  return std::abs(r(i, j)) / std::sqrt(r(i, i) * r(j, j));
}

/// Each point has as many as it can, all earlier and different, and none left out is better than
/// the worst taken by more than float32 can tell.
void expect_best(const Neighbours& found, const Matrix& r, Index count) {
  ASSERT_EQ(found.most, count);
  for (Index i = 0; i < r.rows(); ++i) {
    const auto mine = found.of(i);
    ASSERT_EQ(static_cast<Index>(mine.size()), std::min(i, count));
    double worst = 2;
    for (std::size_t k = 0; k < mine.size(); ++k) {
      ASSERT_LT(mine[k], i);
      if (k > 0) {
        ASSERT_LT(mine[k - 1], mine[k]);
      }
      worst = std::min(worst, correlation(r, i, mine[k]));
    }
    for (Index j = 0; j < i; ++j)
      if (!std::binary_search(mine.begin(), mine.end(), static_cast<std::int32_t>(j))) {
        ASSERT_LE(correlation(r, i, j), worst + 2e-6) << i << " " << j;
      }
  }
}

TEST(Neighbours, OfADistanceAreTheNearestByTree) {
  const Matrix x = random_matrix(700, 2, 1);
  const auto k = kernel("matern32", 2, 0.7);
  expect_best(most_correlated({k, x, 0.1}, {.count = 12}),
              dense_residual(k, x, 0.1, Matrix(700, 0)), 12);
}

TEST(Neighbours, OfADistanceAreTheNearestByTiles) {
  const Matrix x = random_matrix(700, 8, 1);  // more than one tile, more inputs than a tree takes
  const auto k = kernel("rbf:iso", 8, 3);
  const auto found = most_correlated({k, x, 0.1}, {.count = 12});
  EXPECT_EQ(found.kernel_values, 0);
  expect_best(found, dense_residual(k, x, 0.1, Matrix(700, 0)), 12);
}

TEST(Neighbours, LengthscalesCount) {
  const Matrix x = random_matrix(300, 2, 2);
  auto k = Kernel::parse("rbf", 2);
  k.set_lengthscales({0.2, 5.0});
  expect_best(most_correlated({k, x, 0.1}, {.count = 7}), dense_residual(k, x, 0.1, Matrix(300, 0)),
              7);
}

TEST(Neighbours, OfALeafThatSeesSomeInputsAreTheNearestInThose) {
  const Matrix x = random_matrix(300, 3, 2);
  auto k = Kernel::parse("matern32(0,2)", 3);
  k.set_lengthscales({0.2, 1.0, 5.0});
  expect_best(most_correlated({k, x, 0.1}, {.count = 7}), dense_residual(k, x, 0.1, Matrix(300, 0)),
              7);
}

TEST(Neighbours, OfOtherKernelsAreTheMostCorrelated) {
  const Matrix x = random_matrix(600, 2, 3);
  for (const auto* text : {"rbf:iso + linear:iso", "rbf:iso * periodic:iso", "linear:iso + 0.1"}) {
    const auto k = kernel(text, 2, 1);
    EXPECT_FALSE(falls_with_distance(k));
    expect_best(most_correlated({k, x, 0.1}, {.count = 10}),
                dense_residual(k, x, 0.1, Matrix(600, 0)), 10);
  }
}

TEST(Neighbours, OfAPeriodicKernelAreTheNearestOnItsCircles) {
  for (const Index d : {Index{2}, Index{5}}) {  // by tree and by tiles: two coordinates per input
    const Matrix x = 3 * random_matrix(600, d, 3);
    auto k = Kernel::parse("periodic:0.7", d);
    Vector theta = k.log_parameters();
    theta(1) = std::log(0.5);  // a lengthscale of its own
    k.set_log_parameters(theta);
    ASSERT_TRUE(falls_with_distance(k));
    const auto found = most_correlated({k, x, 0.1}, {.count = 10});
    EXPECT_EQ(found.kernel_values, 0);
    expect_best(found, dense_residual(k, x, 0.1, Matrix(600, 0)), 10);
  }
}

TEST(Neighbours, CandidatesOfAProductLieOnTheCircleToo) {
  // Points one period apart are as alike as neighbours: a search by plain distance would miss them.
  const Matrix x = 20 * random_matrix(6000, 1, 3);
  auto k = Kernel::parse("rbf:iso * periodic:iso", 1);
  Vector theta = k.log_parameters();  // variance, lengthscale, lengthscale on the circle, period
  theta << 0, std::log(50.0), std::log(0.2), 0;
  k.set_log_parameters(theta);
  const auto some = most_correlated({k, x, 1e-6}, {.count = 10, .all_pairs = 0});
  const auto all = most_correlated({k, x, 1e-6}, {.count = 10});
  EXPECT_FALSE(some.all_pairs);
  Index same = 0;
  for (Index i = 5000; i < 6000; ++i) {
    std::vector<std::int32_t> both;
    std::ranges::set_intersection(some.of(i), all.of(i), std::back_inserter(both));
    same += static_cast<Index>(both.size());
  }
  EXPECT_GT(same, 9900);  // of 10,000; the metric is that of this product, so ties only
}

TEST(Neighbours, BlockByBlockIsTheSameSearch) {
  const Matrix x = random_matrix(700, 3, 5);
  for (const auto* text : {"matern32:iso", "rbf:iso + linear:iso"})
    for (const Index all_pairs : {Index{0}, Index{30000}}) {
      const auto k = kernel(text, 3, 0.7);
      const NeighbourOptions options{.count = 9, .all_pairs = all_pairs};
      const auto whole = most_correlated({k, x, 0.1}, options);
      const NeighbourSearch search({k, x, 0.1}, options);
      for (const auto& [first, last] : {std::pair<Index, Index>{0, 130}, {130, 131}, {400, 700}}) {
        const auto part = search.find(first, last);
        for (Index i = first; i < last; ++i)
          EXPECT_TRUE(std::ranges::equal(part.of(i), whole.of(i))) << text << " " << i;
      }
    }
}

TEST(Neighbours, OfWhatALowRankPartLeaves) {
  const Matrix x = random_matrix(600, 2, 4);
  const auto k = kernel("rbf:iso", 2, 0.5);
  // Five columns of the Cholesky factor leave a positive semidefinite rest.
  const Matrix dense = k.reference_matrix(x, x);
  const Matrix l = dense.topLeftCorner(5, 5).llt().matrixL();
  const Matrix f = l.triangularView<Eigen::Lower>().solve(dense.topRows(5)).transpose();
  const PointColumns columns = f.transpose().cast<float>();
  const Matrix r = dense_residual(k, x, 0.1, f);
  // Every point a candidate, and none taken for being near.
  expect_best(most_correlated({k, x, 0.1, &columns}, {.count = 10, .candidates = 60, .nearest = 0}),
              r, 10);

  const auto mixed = most_correlated({k, x, 0.1, &columns}, {.count = 10});
  const auto nearest = nearest_earlier(scaled_points(k, x), 5);
  for (Index i = 0; i < 600; ++i)
    EXPECT_TRUE(std::ranges::includes(mixed.of(i), nearest.of(i))) << i;
}

TEST(Neighbours, OfWhatALowRankPartLeavesOfOtherKernels) {
  const Matrix x = random_matrix(300, 2, 4);
  const auto k = kernel("rbf:iso + linear:iso", 2, 0.5);
  const Matrix f = x;  // the linear part
  const PointColumns columns = f.transpose().cast<float>();
  expect_best(most_correlated({k, x, 0.1, &columns}, {.count = 10}), dense_residual(k, x, 0.1, f),
              10);
}

TEST(Neighbours, CandidatesMissLittle) {
  const Matrix x = random_matrix(500, 2, 5);
  const auto k = kernel("rbf:iso + 0.3*linear:iso", 2, 0.7);
  const auto all = most_correlated({k, x, 0.1}, {.count = 10});
  const auto some = most_correlated({k, x, 0.1}, {.count = 10, .all_pairs = 0});
  EXPECT_TRUE(all.all_pairs);
  EXPECT_FALSE(some.all_pairs);
  // All 500 are among the first 4096, so that nothing is missed here.
  EXPECT_EQ(all.index, some.index);
}

TEST(Neighbours, ThreadsDoNotMatter) {
  const Matrix x = random_matrix(400, 7, 6);
  for (const auto* text : {"rbf:iso", "rbf:iso + linear:iso"}) {
    const auto k = kernel(text, 7, 2);
    const testing::WithThreads one(1);
    const auto alone = most_correlated({k, x, 0.1}, {.count = 9});
    const testing::WithThreads three(3);
    EXPECT_EQ(alone.index, most_correlated({k, x, 0.1}, {.count = 9}).index);
  }
}

TEST(Neighbours, FewPoints) {
  const auto k = kernel("rbf:iso", 2, 1);
  const Matrix one = random_matrix(1, 2, 1), three = random_matrix(3, 2, 1);
  EXPECT_EQ(most_correlated({k, one, 0.1}).most, 0);
  const auto found = most_correlated({k, three, 0.1}, {.count = 30});
  EXPECT_EQ(found.most, 2);
  EXPECT_EQ(found.of(2)[0], 0);
  EXPECT_EQ(found.of(2)[1], 1);
  const PointColumns wrong(1, 2);
  EXPECT_THROW(most_correlated({k, three, 0.1, &wrong}), DimensionMismatch);
}

}  // namespace neighbours_test
}  // namespace mercer::approximations
