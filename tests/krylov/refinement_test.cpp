#include "mercer/krylov/refinement.hpp"

#include <gtest/gtest.h>

#include "mercer/krylov/cg.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace refinement_test {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

Matrix rounded_to_float(const Matrix& a) { return a.cast<float>().cast<double>(); }

/// Like a kernel matrix with noise: some eigenvalues from 1 down, all others at 1 / condition.
Matrix kernel_like(Index n, Index outliers, double condition, std::uint64_t seed) {
  Vector eigenvalues = Vector::Constant(n, 1 / condition);
  for (Index i = 0; i < outliers; ++i)
    eigenvalues(i) = std::pow(condition, -double(i) / double(outliers));
  return testing::matrix_with_spectrum(eigenvalues, seed);
}

/// What the method is measured against: inner solves to 1e-3, each from scratch.
int restarted_refinement(const DenseOperator& high, const DenseOperator& low, const Matrix& b,
                         double tolerance, int max_cycles) {
  Matrix x = Matrix::Zero(b.rows(), 1), r = b;
  int iterations = 0;
  for (int cycle = 0; cycle < max_cycles && r.norm() > tolerance * b.norm(); ++cycle) {
    Matrix d = Matrix::Zero(b.rows(), 1);
    iterations += cg(low, r, d, {.tolerance = 1e-3}).iterations;
    x += d;
    r = b - high.matrix() * x;
  }
  return iterations;
}

TEST(SolveMixed, ReachesDoublePrecisionWithFloatProducts) {
  const Matrix a = kernel_like(200, 40, 1e4, 1), b = random_matrix(200, 2, 2);
  const DenseOperator high(a), low(rounded_to_float(a));
  Matrix x = Matrix::Zero(200, 2);
  const auto result = solve_mixed(high, low, b, x, {.tolerance = 1e-11});
  EXPECT_TRUE(result.converged());
  EXPECT_FALSE(result.fell_back_to_double);
  for (Index j = 0; j < 2; ++j)
    EXPECT_LE((b.col(j) - a * x.col(j)).norm(), 1.1e-11 * b.col(j).norm());
  // Without the replaced residuals the float matrix's own solution stops far above.
  Matrix coarse = Matrix::Zero(200, 2);
  cg(low, b, coarse, {.tolerance = 1e-11});
  EXPECT_GT((b - a * coarse).norm(), 1e-7 * b.norm());
}

TEST(SolveMixed, MostProductsAreCheapOnes) {
  const Matrix a = kernel_like(200, 40, 1e4, 1), b = random_matrix(200, 1, 2);
  Matrix x = Matrix::Zero(200, 1);
  const auto result =
      solve_mixed(DenseOperator(a), DenseOperator(rounded_to_float(a)), b, x, {.tolerance = 1e-8});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.low_precision_matvecs, result.iterations);
  const auto expensive = result.matvecs - result.low_precision_matvecs;
  EXPECT_LE(expensive, 6);
}

// A float matrix of condition 1e5 has its cluster of small eigenvalues spread by rounding, and each
// restart finds the large ones anew: no more than twice the iterations of double. Restarting after
// every three digits, as plain refinement does, takes more. Over 20 seeds: 1.36 to 1.54 times the
// iterations of double; 0.92 times those of refinement, with a standard deviation of 0.02, so that
// the sum over six seeds is ten standard deviations away from equality.
TEST(SolveMixed, KeepsTheRateThatFrequentRestartsLose) {
  int all_mixed = 0, all_restarted = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Matrix a = kernel_like(300, 60, 1e5, seed), b = random_matrix(300, 1, seed);
    const DenseOperator high(a), low(rounded_to_float(a));
    Matrix x = Matrix::Zero(300, 1), y = Matrix::Zero(300, 1);
    const SolverOptions options{.tolerance = 1e-9, .max_iterations = 10000};
    const auto mixed = solve_mixed(high, low, b, x, options);
    const auto in_double = cg(high, b, y, options);
    EXPECT_TRUE(mixed.converged());
    EXPECT_LE(mixed.iterations, 2 * in_double.iterations) << "seed " << seed;
    all_mixed += mixed.iterations;
    all_restarted += restarted_refinement(high, low, b, 1e-9, 50);
  }
  EXPECT_LT(all_mixed, all_restarted);
}

TEST(SolveMixed, FallsBackWhenFloatIsTooCoarse) {
  // Condition 1e10 is beyond float: the rounded matrix is not even positive definite.
  const Matrix a = kernel_like(60, 8, 1e10, 5);
  const Matrix b = a * random_matrix(60, 1, 6);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = solve_mixed(DenseOperator(a), DenseOperator(rounded_to_float(a)), b, x,
                                  {.tolerance = 1e-10, .max_iterations = 5000});
  EXPECT_TRUE(result.fell_back_to_double);
  EXPECT_TRUE(result.converged());
  EXPECT_LE((b - a * x).norm(), 1.1e-10 * b.norm());
  EXPECT_LT(result.low_precision_matvecs, result.matvecs);
}

TEST(SolveMixed, AWrongStandInIsNeverCalledConverged) {
  // Low precision that is another matrix altogether: fall back, or say so; never a false answer.
  const Matrix a = spd_matrix(50, 100, 7), other = spd_matrix(50, 100, 8);
  const Matrix b = random_matrix(50, 1, 9);
  Matrix x = Matrix::Zero(50, 1);
  const auto result = solve_mixed(DenseOperator(a), DenseOperator(other), b, x,
                                  {.tolerance = 1e-8, .max_iterations = 5000});
  EXPECT_TRUE(result.fell_back_to_double);
  EXPECT_TRUE(result.converged());
  EXPECT_LE((b - a * x).norm(), 1.1e-8 * b.norm());
}

}  // namespace refinement_test
}  // namespace mercer::krylov
