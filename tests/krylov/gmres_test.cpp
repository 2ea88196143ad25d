#include "mercer/krylov/gmres.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace gmres_test {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

/// Symmetric, half its eigenvalues in [-2, -1] and half in [1, 2].
Matrix indefinite_matrix(Index n, std::uint64_t seed) {
  Vector eigenvalues = Vector::LinSpaced(n, 1.0, 2.0);
  for (Index i = 0; i < n; i += 2) eigenvalues(i) *= -1;
  return testing::matrix_with_spectrum(eigenvalues, seed);
}

TEST(Gmres, TheHistoryIsTheLeastResidualOverTheKrylovSpace) {
  // Against dense least squares: min |b - A K y| over an orthonormal basis of span{b, Ab, ...}.
  const Matrix a = indefinite_matrix(60, 1), b = random_matrix(60, 1, 2);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = gmres(DenseOperator(a), b, x, {.tolerance = 1e-6});
  ASSERT_TRUE(result.converged());
  Matrix basis = b / b.norm();
  for (int k = 1; k <= 12; ++k) {
    const Matrix image = a * basis;
    const Matrix y = image.householderQr().solve(b);
    EXPECT_NEAR(result.residuals(k - 1, 0), (b - image * y).norm() / b.norm(), 1e-10) << k;
    Matrix next = a * basis.rightCols(1);
    for (int pass = 0; pass < 2; ++pass) next -= basis * (basis.transpose() * next);
    basis.conservativeResize(Eigen::NoChange, k + 1);
    basis.col(k) = next / next.norm();
  }
}

TEST(Gmres, TheGivensResidualIsTheTrueOne) {
  for (const double condition : {1e1, 1e3, 1e6})
    for (const int k : {1, 7, 29, 30, 31, 75}) {
      const Matrix a = spd_matrix(100, condition, 3), b = random_matrix(100, 2, 4);
      Matrix x = Matrix::Zero(100, 2);
      const auto result = gmres(DenseOperator(a), b, x, {.tolerance = 1e-12, .max_iterations = k});
      const Index last = result.residuals.rows() - 1;
      for (Index j = 0; j < 2; ++j)
        EXPECT_NEAR(result.residuals(last, j), (b.col(j) - a * x.col(j)).norm() / b.col(j).norm(),
                    1e-10);
    }
}

TEST(Gmres, NeverRises) {
  const Matrix a = indefinite_matrix(80, 5), b = random_matrix(80, 1, 6);
  Matrix x = Matrix::Zero(80, 1);
  const auto result = gmres(DenseOperator(a), b, x, {.tolerance = 1e-10, .restart = 5});
  EXPECT_TRUE(result.converged());
  EXPECT_GT(result.restarts, 0);
  for (Index k = 1; k < result.residuals.rows(); ++k)
    EXPECT_LE(result.residuals(k, 0), result.residuals(k - 1, 0) * (1 + 1e-12));
}

TEST(Gmres, EndsAfterAsManyStepsAsThereAreEigenvalues) {
  Vector eigenvalues = Vector::Constant(50, 1.0);
  eigenvalues.head(10).setConstant(-7.0);
  eigenvalues.tail(10).setConstant(0.2);
  const DenseOperator a(testing::matrix_with_spectrum(eigenvalues, 1));
  const Matrix b = random_matrix(50, 2, 2);
  Matrix x = Matrix::Zero(50, 2);
  const auto result = gmres(a, b, x, {.tolerance = 1e-12});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 3);
}

TEST(Gmres, SolvesIndefiniteSystemsThatCgRefuses) {
  const Matrix a = indefinite_matrix(90, 7), b = random_matrix(90, 3, 8);
  for (const auto solve : {gmres, fgmres}) {
    Matrix x = Matrix::Zero(90, 3);
    const auto result = solve(DenseOperator(a), b, x, {.tolerance = 1e-10}, {});
    EXPECT_TRUE(result.converged());
    for (Index j = 0; j < 3; ++j)
      EXPECT_LE((b.col(j) - a * x.col(j)).norm(), 1.1e-10 * b.col(j).norm());
  }
}

TEST(Gmres, ASingularMatrixIsSolvedWhenItCanBeAndRefusedWhenNot) {
  Matrix a = Matrix::Zero(5, 5);
  a.diagonal() << 1, 2, 3, -1, 0;
  Matrix b = Matrix::Ones(5, 2);
  b(4, 0) = 0;  // in the range; the second column is not
  Matrix x = Matrix::Zero(5, 2);
  const auto result = gmres(DenseOperator(a), b, x, {.tolerance = 1e-10});
  EXPECT_EQ(result.column_stops[0], StopReason::converged);
  EXPECT_NE(result.column_stops[1], StopReason::converged);
  EXPECT_TRUE(x.allFinite());
  EXPECT_NEAR(result.residual_norms(1), (b.col(1) - a * x.col(1)).norm(), 1e-9);
  EXPECT_NEAR(result.residual_norms(1), 1.0, 1e-6);  // the least there is
}

TEST(Gmres, StagnatesInsteadOfTurningRoundForEver) {
  // GMRES(1) makes no progress on [0 1; 1 0] with b = e_1: <b, A b> = 0.
  Matrix a(2, 2);
  a << 0, 1, 1, 0;
  Matrix b(2, 1);
  b << 1, 0;
  Matrix x = Matrix::Zero(2, 1);
  const auto stuck = gmres(DenseOperator(a), b, x,
                           {.max_iterations = 100000, .stagnation_window = 20, .restart = 1});
  EXPECT_EQ(stuck.stop, StopReason::stagnation);
  EXPECT_LE(stuck.iterations, 25);
  const auto two = gmres(DenseOperator(a), b, x);
  EXPECT_TRUE(two.converged());
  EXPECT_NEAR(x(1, 0), 1.0, 1e-12);
}

TEST(Gmres, KeepsItsBasisOrthogonalWhenProductsAreNearlyParallel) {
  // All but one eigenvalue within 1e-9: A v is v to nine digits, and a single pass of Gram-Schmidt
  // would leave seven digits of orthogonality.
  Vector eigenvalues(60);
  for (Index i = 0; i < 60; ++i) eigenvalues(i) = 1 + 1e-9 * double(i);
  eigenvalues(0) = 1e-3;
  const Matrix a = testing::matrix_with_spectrum(eigenvalues, 9), b = random_matrix(60, 1, 10);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = gmres(DenseOperator(a), b, x, {.tolerance = 1e-13});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.restarts, 0);
  EXPECT_NEAR(result.residuals(result.iterations - 1, 0), result.relative_residual, 1e-13);
}

TEST(Fgmres, WithTheExactPreconditionerTakesOneIteration) {
  const Matrix a = spd_matrix(80, 1e4, 1), b = random_matrix(80, 3, 2);
  const testing::Exact p(a);
  for (const auto solve : {gmres, fgmres}) {
    Matrix x = Matrix::Zero(80, 3);
    const auto result = solve(DenseOperator(a), b, x, {.tolerance = 1e-9}, {.preconditioner = &p});
    EXPECT_TRUE(result.converged());
    EXPECT_EQ(result.iterations, 1);
  }
}

TEST(Fgmres, WithTheIdentityItIsGmres) {
  const DenseOperator a(spd_matrix(100, 1e3, 3));
  const testing::Diagonal identity(Vector::Ones(100));
  const Matrix b = random_matrix(100, 2, 4);
  for (const int k : {1, 10, 30, 31, 65}) {
    Matrix x = Matrix::Zero(100, 2), y = x;
    const SolverOptions options{.tolerance = 1e-14, .max_iterations = k};
    fgmres(a, b, x, options, {.preconditioner = &identity});
    gmres(a, b, y, options);
    EXPECT_LE((x - y).norm(), 1e-12 * y.norm()) << k;
  }
}

TEST(Fgmres, WithAFixedPreconditionerItIsGmres) {
  const DenseOperator a(spd_matrix(100, 1e3, 3));
  const testing::Diagonal p(Vector::LinSpaced(100, 1.0, 9.0));
  const Matrix b = random_matrix(100, 1, 4);
  Matrix x = Matrix::Zero(100, 1), y = x;
  const SolverOptions options{.tolerance = 1e-14, .max_iterations = 50};
  fgmres(a, b, x, options, {.preconditioner = &p});
  gmres(a, b, y, options, {.preconditioner = &p});
  EXPECT_LE((x - y).norm(), 1e-11 * y.norm());
}

TEST(Fgmres, FewOuterIterationsAroundAnInnerSolver) {
  // Srinivasan et al. (2014): the regularised system, solved roughly, as preconditioner.
  const Matrix m = spd_matrix(200, 1e4, 7), b = random_matrix(200, 2, 8);
  const testing::InnerCg p(m, 1e-3, 1e-2);
  Matrix x = Matrix::Zero(200, 2), y = x;
  const auto outer = fgmres(DenseOperator(m), b, x, {.tolerance = 1e-8}, {.preconditioner = &p});
  const auto plain = cg(DenseOperator(m), b, y, {.tolerance = 1e-8, .max_iterations = 5000});
  EXPECT_TRUE(outer.converged() && plain.converged());
  EXPECT_LT(outer.iterations, plain.iterations / 5);
  EXPECT_GT(outer.inner_iterations, outer.iterations);
  EXPECT_EQ(outer.total_matvecs(), outer.matvecs + p.inner_products());
}

TEST(Fgmres, CatchesWhatGmresMissesWhenThePreconditionerChanges) {
  const DenseOperator a(spd_matrix(120, 100, 5));
  const Matrix b = random_matrix(120, 1, 6);
  const testing::Changing p(120, 30), same(120, 30);
  Matrix x = Matrix::Zero(120, 1), y = x;
  const SolverOptions options{.tolerance = 1e-8, .max_iterations = 600};
  const auto flexible = fgmres(a, b, x, options, {.preconditioner = &p});
  const auto fixed = gmres(a, b, y, options, {.preconditioner = &same});
  EXPECT_TRUE(flexible.converged());
  // gmres applies one P to what was built with thirty: its own estimate is wrong, and it says so.
  EXPECT_TRUE(!fixed.converged() || fixed.iterations > flexible.iterations);
  EXPECT_NEAR(fixed.residual_norms(0), (b - a.matrix() * y).norm(), 0.1 * fixed.residual_norms(0));
}

TEST(Gmres, HugeAndTinyRightHandSidesDoNotOverflow) {
  const DenseOperator a(spd_matrix(30, 50, 9));
  const Matrix unit = random_matrix(30, 1, 10);
  Matrix expected = Matrix::Zero(30, 1);
  gmres(a, unit, expected, {.tolerance = 1e-10});
  for (const int power : {-900, 900}) {
    const double factor = std::ldexp(1.0, power);
    Matrix x = Matrix::Zero(30, 1);
    const auto result = gmres(a, unit * factor, x, {.tolerance = 1e-10});
    EXPECT_TRUE(result.converged());
    EXPECT_TRUE((x / factor).isApprox(expected, 1e-9));
  }
}

TEST(Gmres, RefusesOptionsOfOtherSolvers) {
  const DenseOperator a(Matrix::Identity(3, 3));
  const Matrix b = Matrix::Ones(3, 1);
  Matrix x = Matrix::Zero(3, 1);
  EXPECT_THROW(gmres(a, b, x, {.window = 5}), InvalidArgument);
  EXPECT_THROW(fgmres(a, b, x, {.keep_coefficients = true}), InvalidArgument);
  EXPECT_THROW(gmres(a, b, x, {.restart = 0}), InvalidArgument);
  EXPECT_THROW(cg(a, b, x, {.restart = 5}), InvalidArgument);
}

}  // namespace gmres_test
}  // namespace mercer::krylov
