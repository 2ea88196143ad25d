#include "mercer/approximations/vecchia.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace vecchia_test {

using testing::random_matrix;
using testing::small_gp;

Matrix dense(const Vecchia& v) {
  Matrix g(v.size(), v.size());
  v.multiply(Matrix::Identity(v.size(), v.size()), g);
  return g;
}

/// Row by row from the definition: with J the neighbours and the point last, R_JJ s = e_last and
/// the row is s / sqrt(s_last).
Matrix definition(const Matrix& r, const Vecchia& v, const Matrix& pattern) {
  Matrix g = Matrix::Zero(r.rows(), r.rows());
  for (const Index i : v.order()) {
    std::vector<Index> set;
    for (Index j = 0; j < r.rows(); ++j)
      if (pattern(i, j) != 0 && j != i) set.push_back(j);
    set.push_back(i);
    const auto n = static_cast<Index>(set.size());
    const Matrix small = r(set, set);
    const Vector s = small.ldlt().solve(Vector::Unit(n, n - 1));
    for (Index j = 0; j < n; ++j)
      g(i, set[static_cast<std::size_t>(j)]) = s(j) / std::sqrt(s(n - 1));
  }
  return g;
}

TEST(Vecchia, RowsFollowTheDefinition) {
  const auto gp = small_gp({.num_points = 200, .noise = 0.05, .kernel = "matern32:iso"});
  const Vecchia v(gp.kernel_operator, gp.noise, {.neighbours = 8, .seed = 2});
  const Matrix g = dense(v);
  for (Index i = 0; i < 200; ++i) {
    const Index place = std::find(v.order().begin(), v.order().end(), i) - v.order().begin();
    EXPECT_EQ((g.row(i).array() != 0).count(), std::min<Index>(place, 8) + 1);
  }
  // Condition number of the small matrices, 200, times rounding.
  EXPECT_LE((g - definition(gp.a.matrix(), v, g)).norm(), 1e-11 * g.norm());
}

TEST(Vecchia, RowsOfTheResidualFollowTheDefinitionInBothPrecisions) {
  const auto gp = small_gp({.num_points = 200, .noise = 0.05, .kernel = "matern32:iso"});
  const Matrix f = rpcholesky(gp.kernel_operator, {.rank = 20}).factor;
  const Matrix r = gp.a.matrix() - f * f.transpose();
  for (const double float32_from : {1e-4, 1.0}) {
    Matrix product;
    const Vecchia v(gp.kernel_operator, gp.noise, f,
                    {.neighbours = 8, .float32_from = float32_from}, &product);
    const Matrix g = dense(v);
    // float32 rounds F F', of size 1, against a residual of at least the noise 0.05.
    const double tolerance = float32_from < gp.noise ? 1e-5 : 1e-11;
    EXPECT_LE((g - definition(r, v, g)).norm(), tolerance * g.norm());
    EXPECT_LE((product - g * f).norm(), tolerance * product.norm());
  }
}

TEST(Vecchia, WithAllEarlierPointsIsExact) {
  const auto gp = small_gp({.num_points = 60, .noise = 0.05});
  const Vecchia v(gp.kernel_operator, gp.noise, {.neighbours = 1000});
  EXPECT_EQ(v.neighbours(), 59);
  const Matrix g = dense(v);
  EXPECT_LE((g * gp.a.matrix() * g.transpose() - Matrix::Identity(60, 60)).norm(), 1e-10);
  const double expected = gp.a.matrix().ldlt().vectorD().array().log().sum();
  EXPECT_NEAR(v.log_det(), expected, 1e-9 * std::abs(expected));
}

TEST(Vecchia, ProductsAndSolvesAgreeWithTheDenseFactor) {
  const auto gp = small_gp({.num_points = 150, .noise = 0.05, .kernel = "matern52:iso"});
  const Vecchia v(gp.kernel_operator, gp.noise, {.neighbours = 10});
  const Matrix g = dense(v);
  for (const Index columns :
       {1, 3, 8, 11}) {  // alone, part of a group, a group, a group and a part
    const Matrix x = random_matrix(150, columns, 4);
    Matrix y(150, columns);
    v.multiply(x, y);
    EXPECT_LE((y - g * x).norm(), 1e-13 * y.norm());
    v.solve(y);
    EXPECT_LE((y - x).norm(), 1e-11 * x.norm());
    v.multiply_transposed(x, y);
    EXPECT_LE((y - g.transpose() * x).norm(), 1e-13 * y.norm());
    v.solve_transposed(y);
    EXPECT_LE((y - x).norm(), 1e-11 * x.norm());
  }
  Matrix wrong(149, 1), right(150, 1);
  EXPECT_THROW(v.multiply(wrong, right), DimensionMismatch);
  EXPECT_THROW(v.solve(wrong), DimensionMismatch);
}

TEST(Vecchia, DuplicatesAndNoNoiseToSpeakOfAreSurvivedAndCounted) {
  const auto gp =
      small_gp({.num_points = 80, .noise = 1e-30, .lengthscale = 50, .duplicate_points = true});
  const Vecchia v(gp.kernel_operator, gp.noise, {.neighbours = 20});
  EXPECT_GE(v.least_noise(), 1e-12);
  EXPECT_TRUE(dense(v).allFinite());
  EXPECT_TRUE(std::isfinite(v.log_det()));
  // With a least noise below rounding the small matrices are not positive definite.
  const Vecchia bare(gp.kernel_operator, gp.noise, {.neighbours = 20, .least_noise = 1e-30});
  EXPECT_GT(bare.raised(), 0);
  EXPECT_TRUE(dense(bare).allFinite());
}

TEST(Vecchia, ThreadsDoNotMatter) {
  const auto gp = small_gp({.num_points = 300, .num_inputs = 7, .kernel = "matern32:iso"});
  const Matrix f = rpcholesky(gp.kernel_operator, {.rank = 10}).factor;
  const testing::WithThreads one(1);
  const Matrix alone = dense(Vecchia(gp.kernel_operator, gp.noise, f, {.neighbours = 9}));
  const testing::WithThreads three(3);
  const Matrix together = dense(Vecchia(gp.kernel_operator, gp.noise, f, {.neighbours = 9}));
  EXPECT_TRUE(testing::same_bits(alone, together));
}

TEST(Vecchia, NoNeighboursIsTheDiagonal) {
  const auto gp = small_gp({.num_points = 20, .noise = 0.5});
  const Vecchia v(gp.kernel_operator, gp.noise, {.neighbours = 0});
  EXPECT_NEAR(v.log_det(), 20 * std::log(1.5), 1e-12);
  EXPECT_THROW(Vecchia(gp.kernel_operator, 0.0), InvalidArgument);
  EXPECT_THROW(Vecchia(gp.kernel_operator, 0.1, Matrix(3, 2)), DimensionMismatch);
}

}  // namespace vecchia_test
}  // namespace mercer::approximations
