#include "mercer/linalg/diagonal.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "mercer/core/error.hpp"
#include "mercer/linalg/linear_operator.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::linalg {
namespace diagonal_test {

using testing::random_matrix;

// A number and a vector of that number are the same matrix.
TEST(Diagonal, OneValueStandsForAll) {
  const Diagonal one = 0.5, each = Vector(Vector::Constant(7, 0.5));
  EXPECT_TRUE(one.uniform() && !each.uniform());
  const Matrix x = random_matrix(7, 3, 1);
  Matrix y = random_matrix(7, 3, 2), z = y;
  one.add_product(-2.0, x, y);
  each.add_product(-2.0, x, z);
  EXPECT_EQ(y, z);
  EXPECT_EQ(one.vector(7), each.vector(7));
  EXPECT_DOUBLE_EQ(one.harmonic_mean(), each.harmonic_mean());
  EXPECT_DOUBLE_EQ(one.trace(7), each.trace(7));
  EXPECT_TRUE(one.inverse_squares(x).isApprox(each.inverse_squares(x), 1e-15));
  EXPECT_EQ(one.plus(1).times(2).raised_to(3.5)(4), each.plus(1).times(2).raised_to(3.5)(4));
}

TEST(Diagonal, IsTheDenseDiagonalMatrix) {
  const Vector d = random_matrix(6, 1, 3).array().square() + 0.1;
  const Diagonal diagonal = d;
  const Matrix x = random_matrix(6, 2, 4), dense = d.asDiagonal();
  const DenseOperator a(random_matrix(6, 6, 5));
  Matrix y(6, 2);
  ShiftedOperator(a, d).apply(x, y);
  EXPECT_TRUE(y.isApprox((a.matrix() + dense) * x, 1e-14));
  const Vector squares = (x.transpose() * dense.inverse() * x).diagonal();
  EXPECT_TRUE(diagonal.inverse_squares(x).isApprox(squares, 1e-14));
  EXPECT_DOUBLE_EQ(diagonal.harmonic_mean(), 6 / dense.inverse().trace());
  const Index which[] = {4, 0};
  EXPECT_EQ(diagonal.rows(which).vector(2), Vector(d({4, 0})));
}

TEST(Diagonal, SaysWhatItCannotBe) {
  EXPECT_THROW(Diagonal(0.0).require_positive("a"), InvalidArgument);
  EXPECT_NO_THROW(Diagonal(0.0).require_nonnegative("a"));
  EXPECT_THROW(Diagonal(Vector{{1.0, -1.0}}).require_nonnegative("a"), InvalidArgument);
  EXPECT_THROW(Diagonal(Vector{{1.0, 2.0}}).require_size(3, "a"), DimensionMismatch);
  EXPECT_NO_THROW(Diagonal(1.0).require_size(3, "a"));
}

}  // namespace diagonal_test
}  // namespace mercer::linalg
