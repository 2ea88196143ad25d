#include "mercer/preconditioners/regularized.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace regularized_test {

using testing::random_matrix;
using testing::small_gp;

Matrix dense_solution(const testing::SmallGp& gp, double delta, const Matrix& r) {
  Matrix p = gp.a.matrix();
  p.diagonal().array() += delta;
  return p.ldlt().solve(r);
}

TEST(Regularized, SolvesTheShiftedSystemToTheInnerTolerance) {
  const auto gp = small_gp({.num_points = 200, .noise = 1e-3});
  const Matrix r = random_matrix(200, 3, 1);
  for (const double tolerance : {1e-2, 1e-4, 1e-10}) {
    const Regularized p({gp.kernel_operator, gp.noise}, 0.05, tolerance);
    Matrix z(200, 3);
    p.solve(r, z);
    const Matrix residual = r - gp.a.matrix() * z - 0.05 * z;
    for (Index j = 0; j < 3; ++j)
      // Twice, for the part of the residual that float32 products do not see.
      EXPECT_LE(residual.col(j).norm(), 2 * tolerance * r.col(j).norm()) << tolerance;
    EXPECT_GE(p.inner_products(), p.inner_iterations());
    EXPECT_GT(p.inner_iterations(), 0);
    // Exact products only where float32 cannot reach.
    EXPECT_EQ(p.inner().exact_products() > 0, tolerance < 1e-5);
  }
  const Regularized exact({gp.kernel_operator, gp.noise}, 0.05, 1e-12);
  Matrix z(200, 3);
  exact.solve(r, z);
  const Matrix expected = dense_solution(gp, 0.05, r);
  // The tolerance times the condition number, 200 / 0.05.
  EXPECT_LE((z - expected).norm(), 4e-9 * expected.norm());
}

TEST(Regularized, UsesTheFastOperatorThatThereIs) {
  const auto gp = small_gp({.num_points = 100});
  const operators::TiledOperator fast(gp.kernel_operator.kernel(), gp.kernel_operator.points(),
                                      operators::Precision::float32);
  const Regularized p({gp.kernel_operator, gp.noise, &fast}, 0.1, 1e-2);
  const auto before = gp.kernel_operator.products();
  Matrix z(100, 2);
  p.solve(random_matrix(100, 2, 1), z);
  EXPECT_EQ(fast.products(), p.inner_products());
  EXPECT_EQ(gp.kernel_operator.products(), before);
}

TEST(Regularized, GoesOnWithExactProductsWhereFloat32BreaksDown) {
  // Noise far below what float32 tells from zero, and a smooth kernel: K in float32 is indefinite.
  const auto gp = small_gp({.num_points = 200, .noise = 1e-11, .lengthscale = 3});
  const Regularized p({gp.kernel_operator, gp.noise}, 1e-10, 1e-4);
  const Matrix r = random_matrix(200, 1, 1);
  Matrix z(200, 1);
  p.solve(r, z);
  EXPECT_TRUE(z.allFinite());
  EXPECT_GT(r.col(0).dot(z.col(0)), 0.0);
  EXPECT_GT(p.inner().exact_products(), 0);
}

TEST(Regularized, SavesOuterIterationsAndCountsTheInnerOnes) {
  const auto gp = small_gp({.num_points = 300, .noise = 1e-3, .kernel = "matern52:iso"});
  const Regularized p({gp.kernel_operator, gp.noise}, default_delta(gp.noise), 0.1);
  Matrix x = Matrix::Zero(300, 1), y = x;
  const auto with = krylov::fcg(gp.a, gp.y, x, {}, {.preconditioner = &p});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(4 * with.iterations, without.iterations);
  EXPECT_EQ(with.inner_matvecs, p.inner_products());
}

TEST(Regularized, RefusesWhatHasNoMeaning) {
  const auto gp = small_gp();
  const Target target{gp.kernel_operator, gp.noise};
  EXPECT_THROW(Regularized(target, 0.0, 1e-2), InvalidArgument);
  EXPECT_THROW(Regularized(target, 0.1, 1.0), InvalidArgument);
  EXPECT_THROW(Regularized(target, 0.1, 0.0), InvalidArgument);
  EXPECT_DOUBLE_EQ(default_delta(0.2), 2.0);
  EXPECT_DOUBLE_EQ(default_delta(0.0), 1e-3);
}

}  // namespace regularized_test
}  // namespace mercer::preconditioners
