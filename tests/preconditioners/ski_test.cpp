#include "mercer/preconditioners/ski.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace ski_test {

using testing::random_matrix;
using testing::small_gp;

TEST(Ski, SolvesWithTheInterpolatedKernelPlusNoise) {
  const Index n = 120;
  const auto gp = small_gp({.num_points = n, .kernel = "matern52:iso"});
  const auto& k = gp.kernel_operator;
  const Ski p(k.kernel(), k.points(), gp.noise, 1e-12);
  Matrix dense(n, n);
  p.approximation().apply(Matrix::Identity(n, n), dense);
  dense.diagonal().array() += gp.noise;
  const Matrix r = random_matrix(n, 2, 1);
  Matrix z(n, 2);
  p.solve(r, z);
  const Matrix expected = dense.ldlt().solve(r);
  // The tolerance times the condition number, N / noise.
  EXPECT_LE((z - expected).norm(), 1.2e-8 * expected.norm());
  EXPECT_GE(p.inner_products(), p.inner_iterations());
}

TEST(Ski, SavesOuterIterationsInFewDimensions) {
  const auto gp =
      small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.5, .kernel = "matern32:iso"});
  const auto built = make("ski", gp.kernel_operator, gp.noise);
  Matrix x = Matrix::Zero(400, 1), y = x;
  const auto with = krylov::fcg(gp.a, gp.y, x, {}, {.preconditioner = built.preconditioner.get()});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(4 * with.iterations, without.iterations);
  EXPECT_GT(with.inner_iterations, 0);
}

TEST(Ski, RefusesKernelsThatAreNotStationary) {
  const auto gp = small_gp({.num_points = 30, .kernel = "rbf + linear"});
  EXPECT_THROW(make("ski", gp.kernel_operator, gp.noise), InvalidArgument);
}

}  // namespace ski_test
}  // namespace mercer::preconditioners
