#include "mercer/linalg/cholesky.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <limits>
#include <string>
#include <vector>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::linalg {
namespace cholesky_test {

using testing::random_matrix;
using testing::same_bits;
using testing::WithThreads;

/// Positive definite and quick to make at any size: a Gram matrix plus a multiple of I.
Matrix problem(Index n) {
  const Matrix g = random_matrix(n, n, 11);
  return g * g.transpose() / static_cast<double>(n) + 0.01 * Matrix::Identity(n, n);
}

// Around the tile sides (at most 96 below 1536 rows), and a ragged last tile.
class CholeskySizes : public ::testing::TestWithParam<int> {};

TEST_P(CholeskySizes, SolvesWithinLapacksRatio) {
  const Index n = GetParam();
  const Matrix a = problem(n), b = random_matrix(n, 3, 12);
  Matrix x = b;
  Cholesky(a).solve_in_place(x);

  // LAPACK's own test: |b - A x| / (eps n |A| |x|) <= 30 in the 1-norm.
  const auto norm1 = [](const Matrix& m) { return m.cwiseAbs().colwise().sum().maxCoeff(); };
  const double eps = std::numeric_limits<double>::epsilon();
  EXPECT_LE(norm1(b - a * x), 30 * eps * static_cast<double>(n) * norm1(a) * norm1(x));
}

TEST_P(CholeskySizes, InverseAndLogDeterminantMatchEigen) {
  const Index n = GetParam();
  const Matrix a = problem(n);
  const Eigen::PartialPivLU<Matrix> lu(a);
  Cholesky cholesky(a);
  // Sum of n logarithms, each exact to rounding of a well-conditioned factor.
  EXPECT_NEAR(cholesky.log_det(), lu.matrixLU().diagonal().array().abs().log().sum(),
              1e-11 * static_cast<double>(n));
  const Matrix inverse = std::move(cholesky).inverse();
  // The condition number is about 400, so the inverse is good to 1e-16 x 400 x a little.
  EXPECT_LE((inverse - lu.inverse()).norm(), 1e-11 * inverse.norm());
  EXPECT_TRUE(same_bits(inverse, inverse.transpose()));
  const Matrix lower = Cholesky(a).lower_inverse().triangularView<Eigen::Lower>();
  EXPECT_TRUE(same_bits(lower, inverse.triangularView<Eigen::Lower>()));
}

TEST_P(CholeskySizes, SameBitsOnAnyNumberOfThreads) {
  const Index n = GetParam();
  const Matrix a = problem(n);
  std::vector<Matrix> factors, inverses;
  for (const int threads : {1, 2, 3}) {
    const WithThreads scope(threads);
    Cholesky cholesky(a);
    factors.emplace_back(cholesky.factor().triangularView<Eigen::Lower>());
    inverses.push_back(std::move(cholesky).inverse());
  }
  for (const int other : {1, 2}) {
    EXPECT_TRUE(same_bits(factors[0], factors[static_cast<std::size_t>(other)]));
    EXPECT_TRUE(same_bits(inverses[0], inverses[static_cast<std::size_t>(other)]));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CholeskySizes,
                         ::testing::Values(1, 2, 127, 128, 129, 255, 256, 257, 700));

TEST(Cholesky, LargerTilesGiveTheSameAnswer) {
  const Index n = 1600;  // above the size where tiles grow to 256
  const Matrix a = problem(n);
  const Matrix inverse = Cholesky(a).inverse();
  const Matrix probe = random_matrix(n, 2, 3);
  EXPECT_LE((inverse * (a * probe) - probe).norm(), 1e-10 * probe.norm());
}

TEST(Cholesky, ReadsOnlyTheLowerTriangle) {
  Matrix a = problem(300);
  const Matrix full = Cholesky(a).inverse();
  a.triangularView<Eigen::StrictlyUpper>().setConstant(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(same_bits(Cholesky(a).inverse(), full));
}

TEST(Cholesky, NamesThePivotThatIsNotPositive) {
  for (const Index pivot : {0, 5, 128, 299}) {
    Matrix a = Matrix::Identity(300, 300);
    a(pivot, pivot) = -1;
    try {
      const Cholesky cholesky(a);
      FAIL() << "a matrix that is not positive definite was factored";
    } catch (const NotPositiveDefinite& e) {
      EXPECT_EQ(e.pivot, pivot);
      EXPECT_NE(std::string(e.what()).find("not positive definite at row"), std::string::npos);
    }
  }
}

TEST(Cholesky, RefusesNumbersThatAreNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Matrix a = Matrix::Identity(200, 200);
    a(150, 3) = bad;
    EXPECT_THROW(Cholesky{a}, InvalidArgument);
  }
  EXPECT_THROW(Cholesky(Matrix(2, 3)), DimensionMismatch);
}

TEST(Cholesky, OfNothingIsNothing) {
  const Cholesky cholesky(Matrix(0, 0));
  EXPECT_EQ(cholesky.log_det(), 0.0);
}

}  // namespace cholesky_test
}  // namespace mercer::linalg
