#include "mercer/preconditioners/pitc.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/block_jacobi.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace pitc_test {

using testing::random_matrix;
using testing::small_gp;

TEST(Pitc, IsTheLowRankPartAndBlocksOfTheRest) {
  const Index n = 130;
  for (const double noise : {1e-2, 1e-6}) {
    const auto gp = small_gp({.num_points = n, .noise = noise, .lengthscale = 0.7});
    const auto low = approximations::nystrom(gp.kernel_operator, {.count = 20, .seed = 3});
    const Pitc p(gp.kernel_operator, gp.noise, Matrix(low.factor), 6);

    const Matrix ff = low.factor * low.factor.transpose();
    Matrix dense = ff;
    const auto& clusters = p.blocks().clusters();
    for (Index b = 0; b < clusters.count(); ++b)
      for (const Index i : clusters.block(b))
        for (const Index j : clusters.block(b)) dense(i, j) = gp.a.matrix()(i, j);
    const Matrix v = random_matrix(n, 3, 1);
    Matrix z(n, 3);
    p.solve(dense * v, z);
    // The condition number is below N / noise.
    EXPECT_LE((z - v).norm(), 1e-14 * double(n) / noise * v.norm());
    const double expected = dense.ldlt().vectorD().array().log().sum();
    EXPECT_NEAR(p.log_det(), expected, 1e-9 * std::abs(expected));
  }
}

// The low-rank part alone may take fewer: pitc took 195 iterations and nystrom 156 with another
// seed.
TEST(Pitc, SavesIterations) {
  const auto gp = small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.5});
  const auto iterations = [&](const linalg::Preconditioner* p) {
    Matrix x = Matrix::Zero(400, 1);
    const auto result = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = p});
    EXPECT_TRUE(result.converged());
    return result.iterations;
  };
  const auto pitc = make("pitc", gp.kernel_operator, gp.noise, {.rank = 40, .blocks = 8});
  const BlockJacobi block_jacobi(gp.kernel_operator, gp.noise, 8);
  const int with = iterations(pitc.preconditioner.get());
  EXPECT_LT(2 * with, iterations(nullptr));
  EXPECT_LT(with, iterations(&block_jacobi));
}

TEST(Pitc, WithOneBlockSolvesAtOnce) {
  const auto gp = small_gp({.num_points = 60});
  const auto built = make("pitc", gp.kernel_operator, gp.noise, {.rank = 10, .blocks = 1});
  Matrix x = Matrix::Zero(60, 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-8},
                                 {.preconditioner = built.preconditioner.get()});
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 2);
  EXPECT_EQ(built.report.rank, 10);
  EXPECT_EQ(built.report.blocks, 1);
}

TEST(Pitc, RefusesAFactorOfAnotherSize) {
  const auto gp = small_gp({.num_points = 30});
  EXPECT_THROW(Pitc(gp.kernel_operator, gp.noise, Matrix::Zero(29, 2), 3), DimensionMismatch);
}

}  // namespace pitc_test
}  // namespace mercer::preconditioners
