#include "mercer/approximations/clusters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace clusters_test {

using testing::random_matrix;

TEST(Clusters, AreABalancedPartition) {
  for (const Index n : {1, 2, 7, 64, 501})
    for (const Index blocks : {1, 2, 3, 7, 22, 600}) {
      const auto result = clusters(random_matrix(n, 3, 1), Vector::Ones(3), blocks);
      EXPECT_EQ(result.count(), std::min(n, blocks));
      Index smallest = n;
      for (Index b = 0; b < result.count(); ++b) {
        const auto block = result.block(b);
        EXPECT_TRUE(std::is_sorted(block.begin(), block.end()));
        smallest = std::min(smallest, static_cast<Index>(block.size()));
      }
      EXPECT_LE(result.largest() - smallest, 1);
      auto all = result.order;
      std::sort(all.begin(), all.end());
      std::vector<Index> expected(static_cast<std::size_t>(n));
      std::iota(expected.begin(), expected.end(), Index{0});
      EXPECT_EQ(all, expected);
    }
}

TEST(Clusters, CutTheWidestAxisAsTheKernelSeesIt) {
  // A square of 8 x 8 points: wide in the first input as it is, in the second when that has the
  // shorter lengthscale.
  Matrix x(64, 2);
  for (Index i = 0; i < 64; ++i) x.row(i) << 2.0 * double(i % 8), double(i / 8);
  const auto plain = clusters(x, Vector::Ones(2), 2);
  for (const Index i : plain.block(0)) EXPECT_LT(i % 8, 4);
  auto kernel = kernels::Kernel::parse("rbf:ard", 2);
  kernel.set_lengthscales({4, 1});
  const auto scaled = clusters(kernel, x, 2);
  for (const Index i : scaled.block(0)) EXPECT_LT(i / 8, 4);
}

TEST(Clusters, TiesGoToTheFirstPoint) {
  const auto result = clusters(Matrix::Ones(10, 2), Vector::Ones(2), 3);
  std::vector<Index> expected(10);
  std::iota(expected.begin(), expected.end(), Index{0});
  EXPECT_EQ(result.order, expected);
}

TEST(Clusters, ThreadsDoNotMatter) {
  const Matrix x = random_matrix(3000, 4, 2);
  std::vector<std::vector<Index>> orders;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    orders.push_back(clusters(x, Vector::Ones(4), 37).order);
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

TEST(Clusters, TheShortestLengthscaleOfAnExpressionCounts) {
  const auto kernel = kernels::Kernel::parse(
      "rbf:iso:lengthscale=3 + 2 * matern32:iso:lengthscale=0.5 * linear + "
      "periodic:iso:lengthscale=0.01",
      2);
  EXPECT_EQ(shortest_lengthscales(kernel), Vector::Constant(2, 0.5));
  EXPECT_EQ(shortest_lengthscales(kernels::Kernel::parse("linear:iso", 2)), Vector::Ones(2));
  EXPECT_EQ(shortest_lengthscales(kernels::Kernel::parse("constant", 2)), Vector::Ones(2));
}

TEST(Clusters, InputsThatNoLeafSeesDoNotCount) {
  const auto kernel = kernels::Kernel::parse("rbf(1):lengthscale=3 + linear(2)", 4);
  const double none = std::numeric_limits<double>::infinity();
  EXPECT_EQ(shortest_lengthscales(kernel), (Vector(4) << none, 3, 1, none).finished());
  Matrix x = Matrix::Zero(4, 4);
  x.col(0) << 100, -100, 50, -50;  // far apart in an input that nobody sees
  x.col(1) << 1, 2, 10, 11;
  const auto halves = clusters(kernel, x, 2);
  EXPECT_EQ(halves.order, (std::vector<Index>{0, 1, 2, 3}));
}

TEST(Clusters, RefuseNoBlocksAndWrongScales) {
  EXPECT_THROW(clusters(Matrix::Ones(3, 2), Vector::Ones(2), 0), InvalidArgument);
  EXPECT_THROW(clusters(Matrix::Ones(3, 2), Vector::Ones(3), 2), DimensionMismatch);
}

}  // namespace clusters_test
}  // namespace mercer::approximations
