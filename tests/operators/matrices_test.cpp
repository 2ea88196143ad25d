// Rectangular products, dense matrices and columns: the same tiles with other rows and columns.
#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace matrices_test {

using testing::all_kernels;
using testing::random_matrix;
using testing::reference_matrix;
using testing::scaled_error;
using testing::some_kernel;

TEST(CrossApply, MatchesTheReference) {
  const Matrix x = random_matrix(230, 3, 1);
  const Matrix v = random_matrix(230, 5, 2);
  for (const auto& text : all_kernels()) {
    const auto kernel = some_kernel(text, 3);
    for (const Index m : {1, 5, 64, 190}) {
      const Matrix a = random_matrix(m, 3, 3);
      const auto k = reference_matrix(kernel, a, x);
      for (const auto precision : {Precision::float64, Precision::float32}) {
        Matrix y(m, 5);
        cross_apply(kernel, a, x, v, precision, y);
        // Standard normal points: distances are moderate, so entries keep the digits of sums.
        EXPECT_LE(scaled_error(k, v, y), precision == Precision::float32 ? 5e-7 : 1e-14)
            << text << ", " << m << " rows";
      }
    }
  }
}

TEST(CrossApply, WithTheSamePointsEqualsTheSymmetricProduct) {
  const Matrix x = random_matrix(500, 4, 4).array() + 1e6;
  const Matrix v = random_matrix(500, 2, 5);
  const auto kernel = some_kernel("matern52 + periodic", 4);
  Matrix cross(500, 2);
  cross_apply(kernel, x, x, v, Precision::float64, cross);
  Matrix symmetric(500, 2);
  TiledOperator(kernel, x).apply(v, symmetric);
  EXPECT_LE((cross - symmetric).cwiseAbs().maxCoeff(), 1e-12 * v.cwiseAbs().sum());
}

TEST(CrossApply, EmptySides) {
  const auto kernel = some_kernel("rbf", 2);
  Matrix none(0, 3);
  cross_apply(kernel, Matrix(0, 2), random_matrix(9, 2, 1), random_matrix(9, 3, 2),
              Precision::float32, none);
  Matrix zero = Matrix::Ones(4, 3);
  cross_apply(kernel, random_matrix(4, 2, 1), Matrix(0, 2), Matrix(0, 3), Precision::float64, zero);
  EXPECT_TRUE(zero.isZero(0));
}

TEST(CrossApply, StreamsManyRows) {
  const Matrix a = random_matrix(9000, 1, 6);
  const Matrix x = random_matrix(20, 1, 7);
  const Matrix v = random_matrix(20, 1, 8);
  const auto kernel = some_kernel("matern32", 1);
  const auto k = reference_matrix(kernel, a, x);
  Matrix y(9000, 1);
  cross_apply(kernel, a, x, v, Precision::float64, y);
  EXPECT_LE(scaled_error(k, v, y), 1e-14);
}

TEST(DenseMatrix, IsSymmetricBitForBitAndMatchesTheReference) {
  for (const auto& text : all_kernels())
    for (const Index n : {1, 63, 200}) {
      const Matrix x = random_matrix(n, 3, 9);
      const auto kernel = some_kernel(text, 3);
      Matrix k = Matrix::Constant(n, n, 7.0);
      dense_matrix(kernel, x, k);
      EXPECT_TRUE(k == k.transpose()) << text;
      const auto reference = reference_matrix(kernel, x, x);
      // Entry by entry, a few roundings of the argument and of exp.
      EXPECT_LE(scaled_error(reference, Matrix::Identity(n, n), k), 2e-14) << text;
    }
}

TEST(LowerMatrix, HasTheBitsOfTheDenseOneAndLeavesTheRestAlone) {
  for (const Index n : {1, 63, 200, 700}) {
    const Matrix x = random_matrix(n, 3, 9);
    const auto kernel = some_kernel("matern52", 3);
    Matrix k = Matrix::Constant(n, n, 7.0), dense = k;
    lower_matrix(kernel, x, k);
    dense_matrix(kernel, x, dense);
    dense.triangularView<Eigen::StrictlyUpper>().setConstant(7.0);
    EXPECT_TRUE(k == dense) << n;
  }
}

TEST(CrossMatrix, MatchesTheReference) {
  for (const auto& text : all_kernels()) {
    const auto kernel = some_kernel(text, 2);
    for (const auto& [m, n] : {std::pair<Index, Index>{1, 100}, {100, 1}, {33, 70}, {130, 129}}) {
      const Matrix a = random_matrix(m, 2, 10).array() + 1e4;
      const Matrix b = random_matrix(n, 2, 11).array() + 1e4;
      Matrix k = Matrix::Constant(m, n, 7.0);
      cross_matrix(kernel, a, b, k);
      const auto reference = reference_matrix(kernel, a, b);
      EXPECT_LE(scaled_error(reference, Matrix::Identity(n, n), k), 2e-14)
          << text << ", " << m << " x " << n;
    }
  }
}

TEST(Columns, AreThoseOfTheMatrix) {
  const Matrix x = random_matrix(300, 3, 12);
  for (const auto& text : all_kernels()) {
    const auto kernel = some_kernel(text, 3);
    const auto reference = reference_matrix(kernel, x, x);
    const std::vector<Index> which = {5, 299, 0, 5};
    Matrix selection = Matrix::Zero(300, 4);
    for (Index k = 0; k < 4; ++k) selection(which[static_cast<std::size_t>(k)], k) = 1;
    for (const auto precision : {Precision::float64, Precision::float32}) {
      const TiledOperator op(kernel, x, precision);
      Matrix out = Matrix::Constant(300, 4, 7.0);
      op.columns(which, out);
      EXPECT_LE(scaled_error(reference, selection, out), 2e-14) << text;
    }
  }
}

TEST(Columns, RefuseAnIndexOutsideThePoints) {
  const TiledOperator op(some_kernel("rbf", 2), random_matrix(5, 2, 1));
  Matrix out(5, 1);
  EXPECT_THROW(op.columns(std::vector<Index>{5}, out), DimensionMismatch);
}

TEST(Matrices, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const auto kernel = some_kernel("rbf * linear + matern12", 3);
  const Matrix x = random_matrix(700, 3, 13);
  const Matrix a = random_matrix(300, 3, 14);
  const Matrix v = random_matrix(700, 3, 15);
  set_num_threads(1);
  Matrix dense(700, 700);
  dense_matrix(kernel, x, dense);
  Matrix product(300, 3);
  cross_apply(kernel, a, x, v, Precision::float32, product);
  for (const int threads : {2, 3, 5}) {
    set_num_threads(threads);
    Matrix other(700, 700);
    dense_matrix(kernel, x, other);
    EXPECT_TRUE(other == dense);
    Matrix other_product(300, 3);
    cross_apply(kernel, a, x, v, Precision::float32, other_product);
    EXPECT_TRUE(other_product == product);
  }
  set_num_threads(before);
}

}  // namespace matrices_test
}  // namespace mercer::operators
