#include "mercer/preconditioners/rpcholesky.hpp"

#include <gtest/gtest.h>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace rpcholesky_test {

using testing::small_gp;

TEST(RpCholeskyPreconditioner, IsTheInverseOfTheApproximationPlusNoise) {
  const auto gp = small_gp({.num_points = 100, .noise = 1e-2, .kernel = "matern52:iso"});
  const auto built = make("rpcholesky", gp.kernel_operator, gp.noise, {.rank = 30, .seed = 3});
  EXPECT_EQ(built.report.rank, 30);
  BuildReport growth;
  const Matrix f = grown_rpcholesky({gp.kernel_operator, gp.noise}, 30, 3, growth).factor();
  Matrix p = f * f.transpose();
  p.diagonal().array() += gp.noise;
  const Matrix r = testing::random_matrix(100, 3, 1), expected = p.ldlt().solve(r);
  Matrix z(100, 3);
  built.preconditioner->solve(r, z);
  // Condition number 1e4 times rounding.
  EXPECT_LE((z - expected).norm(), 1e-10 * expected.norm());
  EXPECT_NEAR(*growth.trace_left, (gp.kernel_operator.matrix() - f * f.transpose()).trace() / 100,
              1e-12);
  EXPECT_GT(*growth.trace_left_at_half, *growth.trace_left);
}

TEST(RpCholeskyPreconditioner, WithEveryPointSolvesAtOnce) {
  const auto gp = small_gp({.num_points = 60, .noise = 1e-2});
  const auto built = make("rpcholesky", gp.kernel_operator, gp.noise, {.rank = 500});
  EXPECT_NE(built.report.notes.find("cut to the number of points 60"), std::string::npos);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-8},
                                 {.preconditioner = built.preconditioner.get()});
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 2);
}

TEST(RpCholeskyPreconditioner, SavesIterations) {
  const auto gp = small_gp({.num_points = 300, .noise = 1e-3, .lengthscale = 1.5});
  const auto built = make("rpcholesky", gp.kernel_operator, gp.noise, {.rank = 40});
  Matrix x = Matrix::Zero(300, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = built.preconditioner.get()});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(4 * with.iterations, without.iterations);
}

}  // namespace rpcholesky_test
}  // namespace mercer::preconditioners
