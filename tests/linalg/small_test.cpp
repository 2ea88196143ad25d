#include "mercer/linalg/small.hpp"

#include <gtest/gtest.h>

#include "tests/testing/dense_problems.hpp"

namespace mercer::linalg {
namespace small_test {

using testing::random_matrix;

TEST(Small, CholeskyAndTriangularSolve) {
  const Matrix a = testing::spd_matrix(37, 100, 1);
  Matrix l = a;
  ASSERT_TRUE(small_cholesky(37, l.data()));
  const Matrix lower = l.triangularView<Eigen::Lower>();
  EXPECT_LE((lower * lower.transpose() - a).norm(), 1e-14 * 37);
  const Vector b = random_matrix(37, 1, 2);
  for (const auto op : {Transpose::no, Transpose::yes}) {
    Vector x = b;
    small_solve_lower(37, l.data(), op, x.data());
    const Vector back = op == Transpose::no ? Vector(lower * x) : Vector(lower.transpose() * x);
    EXPECT_LE((back - b).norm(), 1e-12 * b.norm());
  }
  Matrix indefinite = -a;
  EXPECT_FALSE(small_cholesky(37, indefinite.data()));
}

template <class T>
void check_products(double tolerance) {
  using M = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const M a = random_matrix(50, 7, 1).cast<T>(), b = random_matrix(50, 9, 2).cast<T>();
  M gram = M::Constant(7, 7, T(1)), product(7, 9);
  small_gram<T>(50, 7, T(2), a.data(), T(3), gram.data());
  const M expected = (T(2) * a.transpose() * a).array() + T(3);
  for (Index j = 0; j < 7; ++j)
    for (Index i = j; i < 7; ++i) EXPECT_NEAR(gram(i, j), expected(i, j), 400 * tolerance);
  small_transposed_product<T>(50, 7, 9, a.data(), b.data(), product.data());
  EXPECT_LE(double((product - a.transpose() * b).norm()), 400 * tolerance);
  const M x = random_matrix(7, 1, 3).cast<T>(), z = random_matrix(50, 1, 4).cast<T>();
  M y(50, 1), w(7, 1);
  small_multiply<T>(50, 7, a.data(), Transpose::no, x.data(), y.data());
  small_multiply<T>(50, 7, a.data(), Transpose::yes, z.data(), w.data());
  EXPECT_LE(double((y - a * x).norm()), 400 * tolerance);
  EXPECT_LE(double((w - a.transpose() * z).norm()), 400 * tolerance);
}

// Sums of 50 products of normals, up to 400 on the diagonal, rounded in T.
TEST(Small, ProductsInDouble) { check_products<double>(1e-15); }
TEST(Small, ProductsInFloat) { check_products<float>(1e-6); }

}  // namespace small_test
}  // namespace mercer::linalg
