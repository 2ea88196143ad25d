#include "mercer/preconditioners/block_jacobi.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace block_jacobi_test {

using testing::random_matrix;
using testing::small_gp;

TEST(BlockJacobi, IsTheBlockDiagonalOfA) {
  const Index n = 130;
  const auto gp = small_gp({.num_points = n, .lengthscale = 0.5});
  const BlockJacobi p(gp.kernel_operator, gp.noise, 7);

  const auto& clusters = p.core().clusters();
  Matrix dense = Matrix::Zero(n, n);
  for (Index b = 0; b < clusters.count(); ++b)
    for (const Index i : clusters.block(b))
      for (const Index j : clusters.block(b)) dense(i, j) = gp.a.matrix()(i, j);
  const Matrix v = random_matrix(n, 3, 1);
  Matrix z(n, 3);
  p.solve(dense * v, z);
  // A block's condition number is below 20 / noise = 2000.
  EXPECT_LE((z - v).norm(), 1e-11 * v.norm());
  EXPECT_NEAR(p.log_det(), dense.ldlt().vectorD().array().log().sum(), 1e-9);
}

TEST(BlockJacobi, WithOneBlockSolvesAtOnce) {
  const auto gp = small_gp({.num_points = 60});
  const BlockJacobi p(gp.kernel_operator, gp.noise, 1);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-8}, {.preconditioner = &p});
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 2);
}

TEST(BlockJacobi, SavesIterationsAtShortLengthscales) {
  const auto gp = small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.1});
  const BlockJacobi p(gp.kernel_operator, gp.noise, 8);
  Matrix x = Matrix::Zero(400, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = &p});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(2 * with.iterations, without.iterations);
}

TEST(BlockJacobi, SaysWhichBlocksNeededJitter) {
  const auto gp = small_gp({.num_points = 60, .noise = 1e-18, .duplicate_points = true});
  const auto built = make("block-jacobi", gp.kernel_operator, gp.noise, {.blocks = 3});
  EXPECT_NE(built.report.notes.find("singular to rounding"), std::string::npos);
  EXPECT_EQ(built.report.blocks, 3);
  const auto cut = make("block-jacobi", gp.kernel_operator, 0.1, {.blocks = 100});
  EXPECT_EQ(cut.report.blocks, 60);
  EXPECT_NE(cut.report.notes.find("cut to the number of points"), std::string::npos);
}

TEST(BlockJacobi, DefaultBlocksGrowLikeTheRootUpToFiveHundredPoints) {
  EXPECT_EQ(default_blocks(1), 1);
  EXPECT_EQ(default_blocks(100), 1);
  EXPECT_EQ(default_blocks(1000), 8);
  EXPECT_EQ(default_blocks(10000), 25);
  EXPECT_EQ(default_blocks(1000000), 2000);
}

}  // namespace block_jacobi_test
}  // namespace mercer::preconditioners
