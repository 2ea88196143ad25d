#include "mercer/linalg/blas.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <vector>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::linalg {
namespace blas_test {

using testing::random_matrix;
using testing::same_bits;
using testing::WithThreads;

// A sum of k products of unit normals has terms of size 1 and partial sums up to k (on the diagonal
// of a Gram matrix), so its rounding is a random walk of k steps of k eps at most: far below this.
double product_tolerance(Index k) { return 1e-14 * static_cast<double>(k); }

// m, n, k: one tile, tile remainders, a long inner sum (cut into parts), a single column.
class Gemm : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(Gemm, MatchesEigenForEveryTransposition) {
  const auto [m, n, k] = GetParam();
  for (const auto op_a : {Transpose::no, Transpose::yes})
    for (const auto op_b : {Transpose::no, Transpose::yes}) {
      const Matrix a = op_a == Transpose::no ? random_matrix(m, k, 1) : random_matrix(k, m, 1);
      const Matrix b = op_b == Transpose::no ? random_matrix(k, n, 2) : random_matrix(n, k, 2);
      const Matrix c0 = random_matrix(m, n, 3);
      const Matrix a_op = op_a == Transpose::no ? a : Matrix(a.transpose());
      const Matrix b_op = op_b == Transpose::no ? b : Matrix(b.transpose());
      const Matrix expected = 0.5 * a_op.lazyProduct(b_op) + 2.0 * c0;

      Matrix c = c0;
      gemm(0.5, a, op_a, b, op_b, 2.0, c);
      EXPECT_LE((c - expected).cwiseAbs().maxCoeff(), product_tolerance(k));
    }
}

TEST_P(Gemm, SameBitsOnAnyNumberOfThreads) {
  const auto [m, n, k] = GetParam();
  const Matrix a = random_matrix(k, m, 1), b = random_matrix(k, n, 2);
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 3}) {
    const WithThreads scope(threads);
    results.emplace_back(m, n);
    gemm(1.0, a, Transpose::yes, b, Transpose::no, 0.0, results.back());
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  EXPECT_TRUE(same_bits(results[0], results[2]));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gemm,
                         ::testing::Values(std::tuple{1, 1, 1}, std::tuple{3, 2, 5},
                                           std::tuple{257, 65, 40}, std::tuple{70, 5, 9000},
                                           std::tuple{1100, 1, 3000}, std::tuple{300, 300, 2500}));

TEST(Blas, GemmWithBetaZeroForgetsWhatWasThere) {
  const Matrix a = random_matrix(4, 5000, 1), b = random_matrix(5000, 3, 2);
  Matrix c = Matrix::Constant(4, 3, std::numeric_limits<double>::quiet_NaN());
  gemm(1.0, a, Transpose::no, b, Transpose::no, 0.0, c);
  EXPECT_TRUE(c.allFinite());
  const Matrix none_a(4, 0), none_b(0, 3);
  gemm(1.0, none_a, Transpose::no, none_b, Transpose::no, 0.0, c);
  EXPECT_EQ(c.cwiseAbs().maxCoeff(), 0.0);
}

TEST(Blas, GemmWorksOnBlocksOfLargerMatrices) {
  const Matrix a = random_matrix(40, 40, 1), b = random_matrix(40, 40, 2);
  Matrix c = Matrix::Zero(50, 50);
  gemm(1.0, a.block(3, 4, 20, 10), Transpose::no, b.block(1, 2, 10, 7), Transpose::no, 0.0,
       c.block(5, 6, 20, 7));
  const Matrix expected = a.block(3, 4, 20, 10) * b.block(1, 2, 10, 7);
  EXPECT_LE((c.block(5, 6, 20, 7) - expected).norm(), 1e-13);
  EXPECT_DOUBLE_EQ(c.norm(), c.block(5, 6, 20, 7).norm());
}

TEST(Blas, GemmNamesTheShapesThatDisagree) {
  Matrix c(2, 2);
  EXPECT_THROW(gemm(1, Matrix(2, 3), Transpose::no, Matrix(2, 2), Transpose::no, 0, c),
               DimensionMismatch);
}

TEST(Blas, GramMatchesEigenAndIsSymmetric) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {9000, 7}, {500, 300}, {40, 600}}) {
    const Matrix a = random_matrix(rows, columns, 5);
    const Matrix c0 = Matrix::Identity(columns, columns);
    std::vector<Matrix> results;
    for (const int threads : {1, 2, 3}) {
      const WithThreads scope(threads);
      results.push_back(c0);
      gram(2.0, a, 3.0, results.back());
    }
    const Matrix expected = 2.0 * (a.transpose() * a) + 3.0 * c0;
    EXPECT_LE((results[0] - expected).cwiseAbs().maxCoeff(), product_tolerance(rows));
    EXPECT_TRUE(same_bits(results[0], results[0].transpose()));
    EXPECT_TRUE(same_bits(results[0], results[1]) && same_bits(results[0], results[2]));
  }
}

TEST(Blas, SymmetricGemmMatchesEigenAndIsSymmetric) {
  for (const auto& [n, k] : {std::pair{1, 1}, {7, 9000}, {300, 500}, {600, 40}}) {
    const Matrix a = random_matrix(n, k, 5);
    const Matrix s = random_matrix(k, 1, 6).col(0).asDiagonal() * a.transpose();
    const Matrix c0 = Matrix::Identity(n, n), expected = 2.0 * a.lazyProduct(s) + 3.0 * c0;
    Matrix plain = c0, transposed = c0;
    symmetric_gemm(2.0, a, Transpose::no, s, Transpose::no, 3.0, plain);
    symmetric_gemm(2.0, s, Transpose::yes, a, Transpose::yes, 3.0, transposed);
    EXPECT_LE((plain - expected).cwiseAbs().maxCoeff(), product_tolerance(k));
    EXPECT_LE((transposed - expected).cwiseAbs().maxCoeff(), product_tolerance(k));
    EXPECT_TRUE(same_bits(plain, plain.transpose()));
  }
  Matrix c(2, 3);
  EXPECT_THROW(symmetric_gemm(1, Matrix(2, 4), Transpose::no, Matrix(4, 3), Transpose::no, 0, c),
               DimensionMismatch);
}

TEST(Blas, SolveLowerUndoesTheProduct) {
  for (const int n : {1, 2, 255, 256, 257, 600})
    for (const int columns : {1, 3, 300})
      for (const auto op : {Transpose::no, Transpose::yes}) {
        Matrix l = random_matrix(n, n, 6) / (2.0 * n);
        l.diagonal().setConstant(1.0);  // well conditioned, so the error stays near eps
        const Matrix lower = l.triangularView<Eigen::Lower>();
        const Matrix x = random_matrix(n, columns, 7);
        Matrix b = op == Transpose::no ? Matrix(lower * x) : Matrix(lower.transpose() * x);
        Matrix again = b;
        {
          const WithThreads scope(1);
          solve_lower(l, op, b);  // the upper triangle of l must not be read
        }
        const WithThreads scope(3);
        solve_lower(l, op, again);
        EXPECT_LE((b - x).cwiseAbs().maxCoeff(), 1e-12) << n << " " << columns;
        EXPECT_TRUE(same_bits(b, again));
      }
}

TEST(Blas, SolvesWithALowerTriangleOnTheRight) {
  const Index n = 40, rows = 700;  // several panels of rows
  Matrix l = random_matrix(n, n, 6);
  l.diagonal().array() += 20;  // well conditioned, so that errors stay near eps
  const Matrix lower = l.triangularView<Eigen::Lower>();
  const Matrix x = random_matrix(rows, n, 7);
  for (const auto op : {Transpose::no, Transpose::yes}) {
    Matrix b = op == Transpose::no ? Matrix(x * lower) : Matrix(x * lower.transpose());
    Matrix again = b;
    {
      const WithThreads scope(1);
      solve_lower_right(l, op, b);
    }
    const WithThreads scope(3);
    solve_lower_right(l, op, again);
    EXPECT_LE((b - x).cwiseAbs().maxCoeff(), 1e-12);
    EXPECT_TRUE(same_bits(b, again));
  }
}

TEST(Blas, MultiplyLowerReadsTheLowerTriangleOnly) {
  for (const int n : {1, 255, 257, 600})
    for (const int columns : {1, 300}) {
      const Matrix l = random_matrix(n, n, 6), x = random_matrix(n, columns, 7);
      const Matrix lower = l.triangularView<Eigen::Lower>();
      Matrix b = x, again = x;
      {
        const WithThreads scope(1);
        multiply_lower(l, b);
      }
      const WithThreads scope(3);
      multiply_lower(l, again);
      EXPECT_LE((b - lower.lazyProduct(x)).cwiseAbs().maxCoeff(), product_tolerance(n));
      EXPECT_TRUE(same_bits(b, again));
    }
}

TEST(Blas, ColumnDotsDoNotDependOnOtherColumnsOrThreads) {
  const Matrix x = random_matrix(20001, 4, 8), y = random_matrix(20001, 4, 9);
  std::vector<double> all(4), one(1), threaded(4);
  {
    const WithThreads scope(1);
    column_dots(x, y, all);
  }
  const WithThreads scope(3);
  column_dots(x, y, threaded);
  EXPECT_EQ(all, threaded);
  for (Index j = 0; j < 4; ++j) {
    column_dots(x.col(j), y.col(j), one);
    EXPECT_EQ(one[0], all[static_cast<std::size_t>(j)]);
    EXPECT_NEAR(one[0], x.col(j).dot(y.col(j)), 1e-10);  // sum of 2e4 unit normals' products
  }
}

TEST(Blas, SymmetricEigenRebuildsTheMatrix) {
  for (const Index n : {1, 2, 33}) {
    const Matrix a = testing::spd_matrix(n, 1e3, 4);
    const auto eigen = symmetric_eigen(a);
    const Matrix rebuilt = eigen.vectors * eigen.values.asDiagonal() * eigen.vectors.transpose();
    EXPECT_LE((rebuilt - a).norm(), 1e-13 * static_cast<double>(n));
    const Vector expected = Eigen::SelfAdjointEigenSolver<Matrix>(a).eigenvalues();
    EXPECT_LE((eigen.values - expected).cwiseAbs().maxCoeff(), 1e-13);
  }
  Matrix bad = Matrix::Identity(2, 2);
  bad(1, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(symmetric_eigen(bad), InvalidArgument);
}

TEST(Blas, RunsTheKernelsOfTheMachine) {
#if defined(__x86_64__) && defined(__GNUC__)
  // What scripts/arithmetics asks for must be what runs: OpenBLAS ignores names it does not know.
  if (const char* asked = std::getenv("OPENBLAS_CORETYPE"); asked != nullptr) {
    EXPECT_STREQ(blas_target(), asked);
    return;
  }
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor is older than AVX2";
  EXPECT_STRNE(blas_target(), "Prescott");
  EXPECT_EQ(better_blas_target(), nullptr);
#endif
}

}  // namespace blas_test
}  // namespace mercer::linalg
