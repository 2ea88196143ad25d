// Factorisations and products of dense matrices, cancelled in the middle.
#include <gtest/gtest.h>

#include "mercer/core/rng.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "tests/testing/cancelling.hpp"

namespace mercer::linalg {
namespace cancel_test {

// Tiles of 128: eight by eight of them.
constexpr Index kSize = 1000;

Matrix positive_definite(Index n) {
  Matrix a(n, 40);
  Rng(3, "cancel").fill_normal(a);
  Matrix out = a * a.transpose();
  out.diagonal().array() += 1;
  return out;
}

TEST(Cancel, ACholeskyFactorisation) {
  const Matrix a = positive_definite(kSize);
  const Cholesky before(a);
  // One question a tile at the least: 8 diagonal ones, 28 below, 84 updates.
  EXPECT_GE(testing::expect_cancellable([&] { const Cholesky factor(a); }), 120);
  EXPECT_EQ(Cholesky(a).factor(), before.factor());
}

TEST(Cancel, AnInverse) {
  const Matrix a = positive_definite(kSize);
  EXPECT_GE(testing::expect_cancellable([&] { std::move(Cholesky(a)).inverse(); }), 300);
}

TEST(Cancel, AProduct) {
  const Matrix a = positive_definite(kSize);
  Matrix c(kSize, kSize), before(kSize, kSize);
  const auto multiply = [&](Matrix& out) {
    gemm(1.0, a, Transpose::no, a, Transpose::no, 0.0, out);
  };
  multiply(before);
  EXPECT_GE(testing::expect_cancellable([&] { multiply(c); }), 16);  // tiles of 256
  multiply(c);
  EXPECT_EQ(c, before);
}

TEST(Cancel, ATriangularSolve) {
  const Cholesky factor(positive_definite(kSize));
  Matrix b = Matrix::Ones(kSize, 300), x = b, before = b;
  factor.solve_in_place(before);
  EXPECT_GE(testing::expect_cancellable([&] {
              x = b;
              factor.solve_in_place(x);
            }),
            16);
  x = b;
  factor.solve_in_place(x);
  EXPECT_EQ(x, before);
}

}  // namespace cancel_test
}  // namespace mercer::linalg
