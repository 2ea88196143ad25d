// Kernel products cancelled in the middle: the operator remains usable, and gives the same bits.
#include <gtest/gtest.h>

#include "mercer/core/rng.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/testing/cancelling.hpp"

namespace mercer::operators {
namespace cancel_test {

constexpr Index kPoints = 3000, kInputs = 3;

Matrix points(Index n, const char* name) {
  Matrix x(n, kInputs);
  Rng(5, name).fill_normal(x);
  return x;
}

kernels::Kernel kernel() { return kernels::Kernel::parse("matern32:ard", kInputs); }

TEST(Cancel, AKernelProduct) {
  for (const auto precision : {Precision::float32, Precision::float64}) {
    const TiledOperator k(kernel(), points(kPoints, "points"), precision);
    const Matrix v = points(kPoints, "vectors");
    Matrix y(kPoints, kInputs), before(kPoints, kInputs);
    k.apply(v, before);
    // Pairs of blocks of points, and in each a question per panel of columns.
    EXPECT_GE(testing::expect_cancellable([&] { k.apply(v, y); }), 6);
    k.apply(v, y);
    EXPECT_EQ(y, before);
  }
}

TEST(Cancel, OneBlockOfRowsAgainstManyPoints) {
  // Far fewer rows than a task takes: only the questions inside it can end it.
  const Matrix x = points(20000, "points"), a = points(16, "queries"), v = points(20000, "vectors");
  Matrix y(16, kInputs), before(16, kInputs);
  const auto multiply = [&](Matrix& out) {
    cross_apply(kernel(), a, x, v, Precision::float64, out);
  };
  multiply(before);
  EXPECT_GE(testing::expect_cancellable([&] { multiply(y); }), 10);
  multiply(y);
  EXPECT_EQ(y, before);
}

TEST(Cancel, KernelMatrices) {
  const Matrix x = points(1500, "points"), a = points(600, "queries");
  Matrix k(1500, 1500), cross(600, 1500);
  EXPECT_GE(testing::expect_cancellable([&] { dense_matrix(kernel(), x, k); }), 3);
  EXPECT_GE(testing::expect_cancellable([&] { cross_matrix(kernel(), a, x, cross); }), 6);
}

TEST(Cancel, AStoredMatrixAndItsProduct) {
  const Matrix x = points(1500, "points"), v = points(1500, "vectors");
  Matrix y(1500, kInputs);
  EXPECT_GE(testing::expect_cancellable([&] { const StoredOperator k(kernel(), x); }), 3);
  const StoredOperator k(kernel(), x);
  EXPECT_GE(testing::expect_cancellable([&] { k.apply(v, y); }), 2);
}

TEST(Cancel, AGradient) {
  const Matrix x = points(1500, "points");
  const Matrix s = Matrix::Ones(1500, 1500);
  Vector gradient(kernel().num_parameters());
  EXPECT_GE(testing::expect_cancellable([&] { weighted_gradient(kernel(), x, s, gradient); }), 3);
}

}  // namespace cancel_test
}  // namespace mercer::operators
