#include "mercer/preconditioners/ilu.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace ilu_test {

using testing::random_matrix;
using testing::small_gp;

/// The definition on a dense matrix: column by column, small entries left out of A and of L.
Matrix textbook(const Matrix& a, double drop, double shift) {
  const Index n = a.rows();
  const Vector root = a.diagonal().cwiseSqrt();
  const auto small = [&](double value, Index i, Index j) {
    return std::abs(value) < drop * root(i) * root(j);
  };
  Matrix l = Matrix::Zero(n, n);
  for (Index j = 0; j < n; ++j) {
    l(j, j) = std::sqrt(a(j, j) + shift - l.row(j).head(j).squaredNorm());
    for (Index i = j + 1; i < n; ++i) {
      const double kept = small(a(i, j), i, j) ? 0.0 : a(i, j);
      const double w = kept - l.row(i).head(j).dot(l.row(j).head(j));
      l(i, j) = small(w, i, j) ? 0.0 : w / l(j, j);
    }
  }
  return l;
}

TEST(Ilu, MatchesTheDefinition) {
  for (const double lengthscale : {0.1, 0.5}) {
    const Index n = 120;
    const auto gp = small_gp({.num_points = n, .noise = 0.1, .lengthscale = lengthscale});
    const IncompleteCholesky p(gp.kernel_operator, gp.noise, 1e-2);
    const Matrix l = textbook(gp.a.matrix(), 1e-2, p.shift());
    const Matrix dense = l * l.transpose(), v = random_matrix(n, 3, 1);
    Matrix z(n, 3);
    p.solve(dense * v, z);
    // The condition number is below N / noise = 1200.
    EXPECT_LE((z - v).norm(), 1e-11 * v.norm());
    EXPECT_NEAR(p.log_det(), 2 * l.diagonal().array().log().sum(), 1e-10);
    EXPECT_EQ(p.entries(), (l.array() != 0).count() - n);
    EXPECT_LT(p.entries(), n * (n - 1) / 2);
  }
}

TEST(Ilu, WithoutDroppingSolvesAtOnce) {
  const auto gp = small_gp({.num_points = 100});
  const IncompleteCholesky p(gp.kernel_operator, gp.noise, 0);
  EXPECT_EQ(p.shift(), 0);
  EXPECT_EQ(p.entries(), 100 * 99 / 2);
  Matrix x = Matrix::Zero(100, 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-8}, {.preconditioner = &p});
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 2);
}

TEST(Ilu, ShiftsAndSaysSo) {
  const auto gp = small_gp({.num_points = 200, .noise = 1e-4, .lengthscale = 1});
  const auto built = make("ilu", gp.kernel_operator, gp.noise, {.drop = 0.05});
  EXPECT_NE(built.report.notes.find("added to the diagonal"), std::string::npos);
  const IncompleteCholesky p(gp.kernel_operator, gp.noise, 0.05);
  EXPECT_GT(p.shift(), 0);
  EXPECT_GT(p.attempts(), 1);
}

TEST(Ilu, SavesIterationsAtShortLengthscales) {
  const auto gp = small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.1});
  const IncompleteCholesky p(gp.kernel_operator, gp.noise, default_drop);
  Matrix x = Matrix::Zero(400, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = &p});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(4 * with.iterations, without.iterations);
  EXPECT_THROW(IncompleteCholesky(gp.kernel_operator, gp.noise, -1), InvalidArgument);
}

}  // namespace ilu_test
}  // namespace mercer::preconditioners
