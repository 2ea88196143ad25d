// The laws that every iterative solver obeys.
#include "mercer/krylov/registry.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mercer/core/error.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

class Solvers : public ::testing::TestWithParam<SolverInfo> {
 protected:
  SolveResult solve(const Matrix& a, const Matrix& b, Matrix& x, const SolverOptions& options = {},
                    const SolverContext& context = {}) {
    return GetParam().solve(DenseOperator(a), b, x, options, context);
  }
};

TEST_P(Solvers, AgreesWithCholesky) {
  const Matrix a = spd_matrix(150, 1e3, 1), b = random_matrix(150, 4, 2);
  Matrix x = Matrix::Zero(150, 4), expected = b;
  const auto result = solve(a, b, x, {.tolerance = 1e-13});
  linalg::Cholesky(a).solve_in_place(expected);
  EXPECT_TRUE(result.converged());
  // Residual 1e-13 times condition 1e3 is 1e-10.
  EXPECT_LE((x - expected).norm(), 1e-9 * expected.norm());
}

TEST_P(Solvers, ABlockIsItsColumns) {
  const Matrix a = spd_matrix(80, 1e3, 1), b = random_matrix(80, 3, 2);
  Matrix x = Matrix::Zero(80, 3);
  const auto block = solve(a, b, x, {.tolerance = 1e-12});
  EXPECT_TRUE(block.converged());
  ASSERT_EQ(block.column_stops.size(), 3u);
  for (Index j = 0; j < 3; ++j) {
    Matrix one = Matrix::Zero(80, 1);
    solve(a, b.col(j), one, {.tolerance = 1e-12});
    EXPECT_LE((one - x.col(j)).norm(), 1e-9 * one.norm());
  }
}

TEST_P(Solvers, ZeroRightHandSideHasZeroSolution) {
  const Matrix a = spd_matrix(20, 10, 1);
  Matrix x = random_matrix(20, 1, 2);
  const auto result = solve(a, Matrix::Zero(20, 1), x);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 0);
  EXPECT_EQ(x.norm(), 0.0);
  EXPECT_EQ(result.relative_residual, 0.0);
}

TEST_P(Solvers, ExactFirstGuessTakesNoIteration) {
  const Matrix a = spd_matrix(20, 10, 1), x0 = random_matrix(20, 2, 2);
  Matrix x = x0;
  const auto result = solve(a, a * x0, x);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 0);
  EXPECT_TRUE(testing::same_bits(x, x0));
}

TEST_P(Solvers, AWarmStartSavesIterations) {
  const Matrix a = spd_matrix(100, 1e3, 1), b = random_matrix(100, 1, 2);
  Matrix x = Matrix::Zero(100, 1);
  const auto cold = solve(a, b, x, {.tolerance = 1e-4});
  const auto warm = solve(a, b, x, {.tolerance = 1e-6});
  Matrix y = Matrix::Zero(100, 1);
  const auto straight = solve(a, b, y, {.tolerance = 1e-6});
  EXPECT_TRUE(cold.converged() && warm.converged() && straight.converged());
  EXPECT_LT(warm.iterations, straight.iterations);
}

TEST_P(Solvers, OneByOne) {
  Matrix x = Matrix::Zero(1, 1);
  const auto result = solve(Matrix::Constant(1, 1, 4.0), Matrix::Constant(1, 1, 2.0), x);
  EXPECT_TRUE(result.converged());
  EXPECT_DOUBLE_EQ(x(0, 0), 0.5);
}

TEST_P(Solvers, SaysWhenTheLimitIsReached) {
  const Matrix a = spd_matrix(100, 1e6, 1), b = random_matrix(100, 1, 2);
  Matrix x = Matrix::Zero(100, 1);
  const auto result = solve(a, b, x, {.tolerance = 1e-10, .max_iterations = 5});
  EXPECT_EQ(result.stop, StopReason::iteration_limit);
  EXPECT_EQ(result.iterations, 5);
  EXPECT_EQ(result.residuals.rows(), 5);
}

TEST_P(Solvers, TheReportedResidualIsTheTrueOne) {
  for (const double condition : {10.0, 1e4, 1e8, 1e12})
    for (const int limit : {3, 2000}) {
      const Matrix a = spd_matrix(90, condition, 3), b = random_matrix(90, 2, 4);
      Matrix x = Matrix::Zero(90, 2);
      const auto result = solve(a, b, x, {.tolerance = 1e-9, .max_iterations = limit});
      double worst = 0;
      for (Index j = 0; j < 2; ++j) {
        const double norm = (b.col(j) - a * x.col(j)).norm();
        EXPECT_NEAR(result.residual_norms(j), norm, 0.1 * norm);
        worst = std::max(worst, norm / b.col(j).norm());
      }
      EXPECT_NEAR(result.relative_residual, worst, 0.1 * worst);
      EXPECT_TRUE(!result.converged() || worst <= 1.1e-9);
    }
}

TEST_P(Solvers, StopsWhenTheObserverSaysSo) {
  const Matrix a = spd_matrix(100, 1e6, 1), b = random_matrix(100, 2, 2);
  Matrix x = Matrix::Zero(100, 2);
  const auto result = solve(a, b, x, {.tolerance = 1e-12}, {.observer = [](const Iteration& it) {
                              return it.number == 4 ? Action::stop : Action::proceed;
                            }});
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_EQ(result.iterations, 4);
  EXPECT_NEAR(result.residual_norms(0), (b.col(0) - a * x.col(0)).norm(), 1e-10);
}

TEST_P(Solvers, AnIndefiniteMatrixIsABreakdownNotGarbage) {
  if (!GetParam().needs_positive_definite) GTEST_SKIP();
  Vector eigenvalues = Vector::LinSpaced(40, 1.0, 2.0);
  eigenvalues.head(20) *= -1;
  const Matrix a = testing::matrix_with_spectrum(eigenvalues, 1), b = random_matrix(40, 1, 2);
  Matrix x = Matrix::Zero(40, 1);
  const auto result = solve(a, b, x);
  EXPECT_EQ(result.stop, StopReason::breakdown);
  EXPECT_TRUE(x.allFinite());
  EXPECT_NEAR(result.residual_norms(0), (b - a * x).norm(), 1e-10 * b.norm());
}

TEST_P(Solvers, OneBadColumnDoesNotSpoilTheOthers) {
  if (!GetParam().needs_positive_definite) GTEST_SKIP();
  Matrix a = Matrix::Zero(4, 4);
  a.diagonal() << 1, 2, 3, -1;
  Matrix b = Matrix::Zero(4, 2);
  b(3, 0) = 1;  // only this column sees the negative direction
  b.col(1) << 1, 1, 1, 0;
  Matrix x = Matrix::Zero(4, 2);
  const auto result = solve(a, b, x);
  EXPECT_EQ(result.stop, StopReason::breakdown);
  EXPECT_EQ(result.column_stops[0], StopReason::breakdown);
  EXPECT_EQ(result.column_stops[1], StopReason::converged);
  EXPECT_NEAR(x(2, 1), 1.0 / 3, 1e-6);
}

TEST_P(Solvers, ConditionOfAnInverseEpsilonStopsCleanly) {
  const Matrix a = spd_matrix(100, 1e16, 5), b = random_matrix(100, 1, 6);
  Matrix x = Matrix::Zero(100, 1);
  const auto result = solve(a, b, x, {.tolerance = 1e-8, .max_iterations = 3000});
  EXPECT_FALSE(result.converged() && (b - a * x).norm() > 1.1e-8 * b.norm());
  EXPECT_TRUE(x.allFinite());
}

INSTANTIATE_TEST_SUITE_P(Registry, Solvers, ::testing::ValuesIn(solvers().begin(), solvers().end()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SolverRegistry, NamesWhatThereIs) {
  EXPECT_EQ(solver("cg").name, "cg");
  try {
    solver("no-such");
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("cg"), std::string::npos);
  }
}

}  // namespace
}  // namespace mercer::krylov
