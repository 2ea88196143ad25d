// The laws that every iterative solver obeys.
#include "mercer/krylov/registry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "tests/krylov/allocations.hpp"
#include "tests/krylov/laws.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace registry_test {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

class Solvers : public ::testing::TestWithParam<SolverInfo> {
 protected:
  SolveResult solve(const Matrix& a, const Matrix& b, Matrix& x, const SolverOptions& options = {},
                    const SolverContext& context = {}) {
    return run(DenseOperator(a), b, x, options, context);
  }
  SolveResult run(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                  const SolverOptions& options, const SolverContext& context) {
    return testing::solve_without_draws(GetParam(), a, b, x, options, context);
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

// Of the first column: an earlier solution, and its residual as the solver believes.
TEST_P(Solvers, ATrailHoldsAnEarlierSolutionWithItsResidual) {
  const Matrix a = spd_matrix(150, 1e3, 1), b = random_matrix(150, 3, 2);
  Matrix x = Matrix::Zero(150, 3);
  Trail trail;
  SolverContext context;
  context.trail = &trail;
  const auto result = solve(a, b, x, {.tolerance = 1e-10}, context);
  ASSERT_TRUE(result.converged());
  const auto* earlier = trail.before(result.residual_norms(0));
  ASSERT_NE(earlier, nullptr);
  EXPECT_GE(earlier->residual, 3 * result.residual_norms(0));
  EXPECT_NEAR((b.col(0) - a * earlier->x).norm(), earlier->residual,
              1e-3 * earlier->residual);  // rounding of the recurrence, relative to |b|, is 1e-12
}

TEST_P(Solvers, ATrailIsInTheUnitsOfTheRightHandSide) {
  const Matrix a = spd_matrix(60, 1e2, 1), b = 1e120 * random_matrix(60, 1, 2);
  Matrix x = Matrix::Zero(60, 1);
  Trail trail;
  SolverContext context;
  context.trail = &trail;
  const auto result = solve(a, b, x, {.tolerance = 1e-10}, context);
  ASSERT_TRUE(result.converged());
  const auto* earlier = trail.before(result.residual_norms(0));
  ASSERT_NE(earlier, nullptr);
  EXPECT_NEAR((1e-120 * (b.col(0) - a * earlier->x)).norm(), 1e-120 * earlier->residual,
              1e-3 * 1e-120 * earlier->residual);
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

TEST_P(Solvers, TheResidualHandedOutBelongsToItsColumn) {
  const Matrix a = spd_matrix(90, 1e4, 3);
  Matrix b = random_matrix(90, 5, 4);
  b.col(1).setZero();
  b.col(3) *= 1e-180;  // its squares vanish
  const Matrix known = random_matrix(90, 1, 5);
  b.col(4) = a * known;
  for (const int limit : {3, 12, 2000}) {
    Matrix x = Matrix::Zero(90, 5), r;
    x.col(4) = known;  // done before it began
    solve(a, b, x, {.tolerance = 1e-6, .max_iterations = limit}, {.residual = &r});
    ASSERT_EQ(r.cols(), 5);
    for (Index j = 0; j < 5; ++j)
      EXPECT_LE((r.col(j) - (b.col(j) - a * x.col(j))).norm(), 1e-12 * b.col(j).norm()) << j;
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

TEST_P(Solvers, AgreesWithCholeskyUnderAPreconditioner) {
  Vector d(150);
  for (Index i = 0; i < 150; ++i) d(i) = std::pow(10.0, double(i % 7) / 3);
  const Vector root = d.cwiseSqrt();
  const Matrix a = root.asDiagonal() * spd_matrix(150, 1e2, 1) * root.asDiagonal();
  const Matrix b = random_matrix(150, 3, 2);
  const testing::Diagonal p(d);
  Matrix x = Matrix::Zero(150, 3), expected = b;
  const auto result = solve(a, b, x, {.tolerance = 1e-13}, {.preconditioner = &p});
  linalg::Cholesky(a).solve_in_place(expected);
  EXPECT_TRUE(result.converged());
  // Residual 1e-13 times condition 1e4 is 1e-9 at worst.
  EXPECT_LE((x - expected).norm(), 1e-9 * expected.norm());
  EXPECT_EQ(result.inner_iterations, 0);
  EXPECT_EQ(result.total_matvecs(), result.matvecs);
}

TEST_P(Solvers, FlexibleMethodsTakeAPreconditionerThatChangesAtEveryStep) {
  if (!GetParam().flexible) GTEST_SKIP();
  const Matrix a = spd_matrix(120, 1e3, 1), b = random_matrix(120, 2, 2);
  const testing::Changing p(120, 10);
  Matrix x = Matrix::Zero(120, 2), expected = b;
  const auto result =
      solve(a, b, x, {.tolerance = 1e-12, .max_iterations = 3000}, {.preconditioner = &p});
  linalg::Cholesky(a).solve_in_place(expected);
  EXPECT_TRUE(result.converged());
  EXPECT_LE((x - expected).norm(), 1e-9 * expected.norm());  // 1e-12 times condition 1e3
}

TEST_P(Solvers, ReportsInnerIterationsOfItsPreconditioner) {
  // Inner solves to 1e-12 are the same P to rounding at every step, which suits every solver.
  const Matrix a = spd_matrix(80, 1e3, 1), b = random_matrix(80, 2, 2);
  const testing::InnerCg p(a, 0.01, 1e-12);
  Matrix warm = random_matrix(80, 1, 3), z = warm;
  p.solve(warm, z);  // counts from before do not belong to the solve
  const auto iterations = p.inner_iterations(), products = p.inner_products();
  Matrix x = Matrix::Zero(80, 2);
  const auto result = solve(a, b, x, {.tolerance = 1e-8}, {.preconditioner = &p});
  EXPECT_TRUE(result.converged());
  EXPECT_GT(result.inner_iterations, 0);
  EXPECT_EQ(result.inner_iterations, p.inner_iterations() - iterations);
  EXPECT_EQ(result.inner_matvecs, p.inner_products() - products);
  EXPECT_EQ(result.total_matvecs(), result.matvecs + result.inner_matvecs);
}

TEST_P(Solvers, ColumnsOfABlockAreTheSingleSolvesBitForBit) {
  // One column claims early, one has a guess, one is zero: slots are exchanged again and again.
  const testing::ColumnwiseOperator a(spd_matrix(120, 1e4, 4));
  Vector d = Vector::LinSpaced(120, 1.0, 2.0);
  const testing::Diagonal p(d);
  Matrix b = random_matrix(120, 5, 5);
  b.col(2).setZero();
  Matrix image(120, 1);
  a.apply(random_matrix(120, 1, 8), image);
  b.col(1) = image;
  Matrix x = Matrix::Zero(120, 5);
  x.col(3) = random_matrix(120, 1, 6);
  const Matrix guess = x;
  const SolverOptions options{
      .tolerance = 1e-9, .max_iterations = 4000, .residual_replacement_interval = 7};
  for (const linalg::Preconditioner* used : {static_cast<const linalg::Preconditioner*>(nullptr),
                                             static_cast<const linalg::Preconditioner*>(&p)}) {
    x = guess;
    const auto block = run(a, b, x, options, {.preconditioner = used});
    for (Index j = 0; j < 5; ++j) {
      Matrix one = guess.col(j);
      const auto single = run(a, b.col(j), one, options, {.preconditioner = used});
      EXPECT_TRUE(testing::same_bits(one, x.col(j))) << j;
      EXPECT_EQ(single.iterations, block.column_iterations[static_cast<std::size_t>(j)]);
      EXPECT_EQ(single.stop, block.column_stops[static_cast<std::size_t>(j)]);
    }
  }
}

TEST_P(Solvers, CountsEveryProduct) {
  const testing::ColumnwiseOperator a(spd_matrix(60, 100, 4));
  const Matrix b = random_matrix(60, 3, 5);
  Matrix x = random_matrix(60, 3, 6);
  const auto result = run(a, b, x, {.tolerance = 1e-10}, {});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.matvecs, a.products);
}

TEST_P(Solvers, SameBitsOnAnyNumberOfThreads) {
  const DenseOperator a(spd_matrix(300, 30, 4));
  const Matrix b = random_matrix(300, 900, 5);  // wide enough for parallel vector updates
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    results.push_back(Matrix::Zero(300, 900));
    run(a, b, results.back(), {.tolerance = 1e-3, .max_iterations = 4}, {});
  }
  EXPECT_TRUE(testing::same_bits(results[0], results[1]));
  EXPECT_TRUE(testing::same_bits(results[0], results[2]));
}

TEST_P(Solvers, LaterIterationsAllocateNothing) {
  // After the window or the first cycle has filled up, whatever the solver keeps is there.
  const Index n = 200;
  const DenseOperator a(spd_matrix(n, 1e10, 11));
  const testing::Diagonal p(Vector::Ones(n));
  const Matrix b = random_matrix(n, 2, 12);
  long first = 0, last = 0;
  for (int warm = 0; warm < 2; ++warm) {
    Matrix x = Matrix::Zero(n, 2);
    run(a, b, x, {.tolerance = 1e-14, .max_iterations = 100},
        {.preconditioner = &p, .observer = [&](const Iteration& it) {
           (it.number <= 40 ? first : last) = testing::allocation_count();
           return Action::proceed;
         }});
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(first, last);
}

TEST_P(Solvers, WhatIsNotANumberNeverReachesTheAnswer) {
  const Matrix a = spd_matrix(50, 1e4, 1), b = random_matrix(50, 1, 2);
  for (const int call : {1, 2, 5, 31, 32}) {  // gmres solves with P once more when a cycle ends
    const testing::GivesNan p(50, call);
    Matrix x = Matrix::Zero(50, 1);
    const auto result = solve(a, b, x, {.tolerance = 1e-13}, {.preconditioner = &p});
    EXPECT_EQ(result.stop, StopReason::breakdown) << call;
    EXPECT_TRUE(x.allFinite()) << call;
    const double norm = (b - a * x).norm();
    EXPECT_NEAR(result.residual_norms(0), norm, 1e-10 * b.norm()) << call;
  }
}

TEST_P(Solvers, AnOperatorThatGivesNanIsABreakdown) {
  Matrix a = spd_matrix(20, 10, 1);
  a(3, 4) = a(4, 3) = std::numeric_limits<double>::quiet_NaN();
  Matrix x = Matrix::Zero(20, 1);
  const auto result = solve(a, random_matrix(20, 1, 2), x);
  EXPECT_EQ(result.stop, StopReason::breakdown);
  EXPECT_TRUE(x.allFinite());
}

TEST_P(Solvers, TheZeroMatrixIsABreakdown) {
  Matrix x = Matrix::Zero(20, 1);
  const Matrix b = random_matrix(20, 1, 2);
  const auto result = solve(Matrix::Zero(20, 20), b, x);
  EXPECT_EQ(result.stop, StopReason::breakdown);
  EXPECT_EQ(x.norm(), 0.0);
  EXPECT_EQ(result.relative_residual, 1.0);
}

TEST_P(Solvers, NoiseOfARoundingErrorGivesAnAnswerOrARefusal) {
  // A squared-exponential kernel on close points: singular to working precision without the noise.
  const Index n = 100;
  for (const double noise : {1e-2, 1e-6, 1e-12}) {
    Matrix a(n, n);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        a(i, j) = std::exp(-0.5 * std::pow(double(i - j) / 20, 2)) + (i == j ? noise : 0.0);
    const Matrix b = random_matrix(n, 2, 3);
    Matrix x = Matrix::Zero(n, 2);
    const auto result = solve(a, b, x, {.tolerance = 1e-6, .max_iterations = 2000});
    EXPECT_TRUE(x.allFinite());
    for (Index j = 0; j < 2; ++j) {
      const double norm = (b.col(j) - a * x.col(j)).norm();
      // Two ways to sum A x differ by rounding, which |x| of 1 / noise makes large.
      const double rounding = 1e-16 * double(n) * x.col(j).norm();
      EXPECT_NEAR(result.residual_norms(j), norm, 0.1 * norm + rounding) << noise;
      EXPECT_TRUE(result.column_stops[static_cast<std::size_t>(j)] != StopReason::converged ||
                  norm <= 1.1e-6 * b.col(j).norm());
    }
    EXPECT_TRUE(result.converged() || noise < 1e-2);
  }
}

TEST_P(Solvers, LowPrecisionProductsReachFullPrecision) {
  if (!GetParam().takes_low_precision) GTEST_SKIP();
  const Matrix a = spd_matrix(120, 1e3, 1), b = random_matrix(120, 2, 2);
  const DenseOperator low(a.cast<float>().cast<double>());
  Matrix x = Matrix::Zero(120, 2);
  const auto result =
      solve(a, b, x, {.tolerance = 1e-11, .max_iterations = 5000}, {.low_precision = &low});
  EXPECT_TRUE(result.converged());
  EXPECT_FALSE(result.fell_back_to_double);
  EXPECT_GT(result.low_precision_matvecs, result.matvecs / 2);
  for (Index j = 0; j < 2; ++j)
    EXPECT_LE((b.col(j) - a * x.col(j)).norm(), 1.1e-11 * b.col(j).norm());
}

TEST_P(Solvers, AWrongLowPrecisionOperatorIsNoticed) {
  if (!GetParam().takes_low_precision) GTEST_SKIP();
  const Matrix a = spd_matrix(50, 100, 7), b = random_matrix(50, 2, 9);
  const DenseOperator other(spd_matrix(50, 100, 8));
  Matrix x = Matrix::Zero(50, 2);
  const auto result =
      solve(a, b, x, {.tolerance = 1e-8, .max_iterations = 5000}, {.low_precision = &other});
  EXPECT_TRUE(result.fell_back_to_double);
  EXPECT_TRUE(result.converged());
  EXPECT_LE((b - a * x).norm(), 1.1e-8 * b.norm());
}

TEST_P(Solvers, StatesItsCosts) {
  const auto& info = GetParam();
  EXPECT_GT(info.bytes(1000, 2, true), info.bytes(1000, 1, true));
  EXPECT_GE(info.bytes(1000, 1, true), info.bytes(1000, 1, false));
  EXPECT_EQ(info.flops(1000, 2), 2 * info.flops(1000, 1));
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

}  // namespace registry_test
}  // namespace mercer::krylov
