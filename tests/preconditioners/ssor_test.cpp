#include "mercer/preconditioners/ssor.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "mercer/krylov/cg.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace ssor_test {

using testing::random_matrix;
using testing::small_gp;

TEST(Ssor, MatchesTheDefinition) {
  const Index n = 300;  // more than a tile of the triangular solves
  const auto gp = small_gp({.num_points = n, .noise_spread = 30, .lengthscale = 0.2});
  const Ssor p(gp.kernel_operator, gp.row_noise);

  const double w = ssor_relaxation;
  const Matrix& a = gp.a.matrix();
  const Matrix d = Matrix(a.diagonal().asDiagonal()) / w;
  const Matrix lower = d + Matrix(a.triangularView<Eigen::StrictlyLower>());
  const Matrix dense = w / (2 - w) * lower * d.inverse() * lower.transpose();
  const Matrix v = random_matrix(n, 3, 1);
  Matrix z(n, 3);
  p.solve(dense * v, z);
  // Correlations are short, so the triangle is well conditioned, P up to about 1e4.
  EXPECT_LE((z - v).norm(), 1e-10 * v.norm());
  EXPECT_NEAR(p.log_det(), dense.ldlt().vectorD().array().log().sum(), 1e-8);
}

TEST(Ssor, SavesIterationsAtShortLengthscales) {
  const auto gp =
      small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.1, .kernel = "matern32:iso"});
  const Ssor p(gp.kernel_operator, gp.noise);
  Matrix x = Matrix::Zero(400, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = &p});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(3 * with.iterations, 2 * without.iterations);
}

}  // namespace ssor_test
}  // namespace mercer::preconditioners
