#include "mercer/krylov/fcg.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace fcg_test {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

TEST(Fcg, WithAFixedPreconditionerItsIteratesAreThoseOfPcg) {
  const DenseOperator a(spd_matrix(150, 1e3, 1));
  const testing::Diagonal p(Vector::LinSpaced(150, 1.0, 5.0));
  const Matrix b = random_matrix(150, 2, 2);
  for (const int window : {1, 3, 15, 1000})
    for (int k = 1; k <= 20; ++k) {
      Matrix x = Matrix::Zero(150, 2), y = x, restarted = x;
      const SolverContext context{.preconditioner = &p};
      fcg(a, b, x, {.tolerance = 1e-14, .max_iterations = k, .window = window}, context);
      cg(a, b, y, {.tolerance = 1e-14, .max_iterations = k}, context);
      fcg(a, b, restarted,
          {.tolerance = 1e-14, .max_iterations = k, .window = window, .window_restarts = true},
          context);
      // A step of either method has a product, two dot products and two updates, each rounded by
      // sqrt(n) u, and the condition of P^-1 A (at most 5e3) multiplies what k steps of that are.
      const double allowed = 10 * 1.1e-16 * std::sqrt(150.0) * 5e3 * k;
      EXPECT_LE((x - y).norm(), allowed * y.norm()) << window << ' ' << k;
      EXPECT_LE((restarted - y).norm(), allowed * y.norm()) << window << ' ' << k;
    }
}

TEST(Fcg, ConvergesWhereAChangingPreconditionerStopsPcg) {
  const DenseOperator a(spd_matrix(200, 1e3, 3));
  const Matrix b = random_matrix(200, 1, 4);
  const SolverOptions options{.tolerance = 1e-8, .max_iterations = 2000};
  const testing::Changing p(200, 30), same(200, 30);
  Matrix x = Matrix::Zero(200, 1), y = x;
  const auto flexible = fcg(a, b, x, options, {.preconditioner = &p});
  const auto plain = cg(a, b, y, options, {.preconditioner = &same});
  EXPECT_TRUE(flexible.converged());
  RecordProperty("fcg", flexible.iterations);
  RecordProperty("cg", plain.iterations);
  EXPECT_TRUE(!plain.converged() || plain.iterations > 1.2 * flexible.iterations)
      << flexible.iterations << ' ' << plain.iterations;
}

TEST(Fcg, TheFullWindowEndsInNStepsWhateverThePreconditioner) {
  // Conjugate directions span the space after n of them; only a full window keeps them conjugate.
  const Index n = 40;
  const DenseOperator a(spd_matrix(n, 1e3, 5));
  const Matrix b = random_matrix(n, 1, 6);
  const testing::Changing p(n, 100), same(n, 100);
  Matrix x = Matrix::Zero(n, 1), y = x;
  const auto full = fcg(a, b, x, {.tolerance = 1e-9, .window = 1000}, {.preconditioner = &p});
  const auto short_window =
      fcg(a, b, y, {.tolerance = 1e-9, .window = 2}, {.preconditioner = &same});
  EXPECT_TRUE(full.converged());
  EXPECT_LE(full.iterations, n + 1);  // one for rounding
  EXPECT_GT(short_window.iterations, full.iterations);
}

TEST(Fcg, TheFullWindowTakesFewerIterationsThanMethodsLosingOrthogonality) {
  // Few large eigenvalues far above the rest, as kernel matrices have them, make CG forget.
  Vector eigenvalues(200);
  for (Index i = 0; i < 200; ++i) eigenvalues(i) = i < 40 ? std::pow(0.7, double(i)) : 1e-6;
  const DenseOperator a(testing::matrix_with_spectrum(eigenvalues, 11));
  const Matrix b = random_matrix(200, 1, 12);
  const auto iterations = [&](std::optional<int> window, bool restarts) {
    Matrix x = Matrix::Zero(200, 1);
    const auto result = fcg(
        a, b, x,
        {.tolerance = 1e-8, .max_iterations = 4000, .window = window, .window_restarts = restarts});
    EXPECT_TRUE(result.converged());
    return result.iterations;
  };
  Matrix x = Matrix::Zero(200, 1);
  const int plain = cg(a, b, x, {.tolerance = 1e-8, .max_iterations = 4000}).iterations;
  const int full = iterations(4000, false);
  EXPECT_LE(full, 42);  // 41 distinct eigenvalues, one more for rounding
  // Whoever forgets takes many times as many, in an order that depends on rounding: a window of 15
  // is before plain CG on some machines (1.0 to 0.8 times its iterations) and behind it on others.
  EXPECT_LT(2 * full, plain);
  EXPECT_LT(2 * full, iterations({}, false));
  EXPECT_LT(2 * full, iterations({}, true));
}

TEST(Fcg, TakesAnInnerSolverAsPreconditioner) {
  const Matrix m = spd_matrix(200, 1e4, 7);
  const Matrix b = random_matrix(200, 2, 8);
  const testing::InnerCg p(m, 1e-3, 1e-2);
  Matrix x = Matrix::Zero(200, 2), y = x;
  const auto outer = fcg(DenseOperator(m), b, x, {.tolerance = 1e-8}, {.preconditioner = &p});
  const auto plain = cg(DenseOperator(m), b, y, {.tolerance = 1e-8, .max_iterations = 5000});
  EXPECT_TRUE(outer.converged() && plain.converged());
  EXPECT_LT(outer.iterations, plain.iterations / 5);  // outer steps are few,
  EXPECT_GT(outer.total_matvecs(), outer.matvecs);    // inner products are not hidden
  EXPECT_EQ(outer.inner_iterations, p.inner_iterations());
}

TEST(Fcg, AcceptsADirectionThatPointsUphill) {
  // P = -I is no preconditioner, but the step along p is a minimum all the same.
  const DenseOperator a(spd_matrix(30, 50, 9));
  const testing::Diagonal p(-Vector::Ones(30));
  const Matrix b = random_matrix(30, 1, 10);
  Matrix x = Matrix::Zero(30, 1);
  EXPECT_TRUE(fcg(a, b, x, {}, {.preconditioner = &p}).converged());
}

TEST(Fcg, RefusesOptionsOfOtherSolvers) {
  const DenseOperator a(Matrix::Identity(3, 3));
  const Matrix b = Matrix::Ones(3, 1);
  Matrix x = Matrix::Zero(3, 1);
  EXPECT_THROW(fcg(a, b, x, {.restart = 5}), InvalidArgument);
  EXPECT_THROW(fcg(a, b, x, {.keep_coefficients = true}), InvalidArgument);
  EXPECT_THROW(fcg(a, b, x, {.window = 0}), InvalidArgument);
  EXPECT_THROW(cg(a, b, x, {.window = 5}), InvalidArgument);
  EXPECT_THROW(cg(a, b, x, {.window_restarts = true}), InvalidArgument);
}

}  // namespace fcg_test
}  // namespace mercer::krylov
