#include "mercer/preconditioners/woodbury.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::preconditioners {
namespace woodbury_test {

using testing::random_matrix;

/// Columns that shrink from 1 to `last`, as those of a pivoted Cholesky factor do.
Matrix decaying_factor(Index n, Index k, double last, std::uint64_t seed = 3) {
  Matrix f = random_matrix(n, k, seed) / std::sqrt(static_cast<double>(n));
  for (Index j = 0; j < k; ++j)
    f.col(j) *= std::pow(last, static_cast<double>(j) / static_cast<double>(k - 1));
  return f;
}

struct Case {
  double last, noise;
};

// From benign to hopeless in the textbook form: S_1 / noise from 1 to 1e12.
class WoodburyCases : public ::testing::TestWithParam<Case> {};

// In units of the unit roundoff u, a sum of m terms is off by about sqrt(m), and LAPACK's
// eigenvectors of k x k by about sqrt(k) (probabilistic rounding analysis: Higham & Mary 2019).
constexpr double u = 0.5 * std::numeric_limits<double>::epsilon();

// z = D^-1/2 (v - U S (I + S)^-1 U'v), v = D^-1/2 r. The k sums of n terms in U'v are off by
// sqrt(n k) u |v| together, as is what U multiplies them by, so D^1/2 z is off by as much. P
// enlarges that by |P| / noise, but no further than 1e10, from where on it is projected twice.
// Besides, there is the backward error of the small products: k u |P| |z|.
TEST_P(WoodburyCases, SolveIsBackwardStable) {
  const auto [last, noise] = GetParam();
  const Index n = 120, k = 30;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix f = decaying_factor(n, k, last, seed);
    const Matrix p = f * f.transpose() + noise * Matrix::Identity(n, n);
    const Woodbury woodbury(Matrix(f), noise);
    // A generic right-hand side, and one in the range of F, whose solution is large there.
    Matrix r(n, 2);
    r.col(0) = random_matrix(n, 1, seed, "right-hand side");
    r.col(1) = f.rowwise().sum();
    Matrix z(n, 2);
    woodbury.solve(r, z);
    const double spread = std::min(p.norm() / noise, 1e10);
    for (Index j = 0; j < 2; ++j)
      EXPECT_LE((r.col(j) - p * z.col(j)).norm(),
                k * u * p.norm() * z.col(j).norm() +
                    2 * std::sqrt(double(n * k)) * u * spread * r.col(j).norm())
          << "seed " << seed;
  }
}

TEST_P(WoodburyCases, SolveIsSymmetricAndPositive) {
  const auto [last, noise] = GetParam();
  const Index n = 60;
  const Woodbury woodbury(decaying_factor(n, 20, last), noise);
  Matrix inverse(n, n);
  woodbury.solve(Matrix::Identity(n, n), inverse);
  EXPECT_LE((inverse - inverse.transpose()).norm(), 1e-12 * inverse.norm());
  const Vector eigenvalues =
      Eigen::SelfAdjointEigenSolver<Matrix>(0.5 * (inverse + inverse.transpose())).eigenvalues();
  // 1/(1 + S_1) may drown in rounding of 1/noise, but only in that.
  EXPECT_GE(eigenvalues(0), -1e-14 / noise);
  EXPECT_LE(eigenvalues(n - 1), (1 + 1e-12) / noise);
}

// log|P| = sum log(1 + sigma^2) + log|D|, sigma the singular values of D^-1/2 F. Each is off by
// sqrt(k) u sigma_1, which moves its term by at most as much, and directions that are off by
// sqrt(k) u sigma_1^2 / sigma^2 enter by their square.
TEST_P(WoodburyCases, LogDeterminantMatchesTheEigenvalues) {
  const auto [last, noise] = GetParam();
  const Index n = 80, k = 25;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix f = decaying_factor(n, k, last, seed);
    const Vector singular = Eigen::JacobiSVD<Matrix>(f).singularValues();
    const double expected =
        (singular.array().square() + noise).log().sum() + (n - k) * std::log(noise);
    const double s1 = singular(0) * singular(0) / noise, off = std::sqrt(double(k)) * u;
    EXPECT_NEAR(Woodbury(Matrix(f), noise).log_det(), expected,
                k * (off * std::sqrt(s1) + off * s1 * off * s1) + n * u * std::abs(expected))
        << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Spread, WoodburyCases,
                         ::testing::Values(Case{1, 1}, Case{1, 1e-2}, Case{1e-3, 1e-4},
                                           Case{1e-4, 1e-8}, Case{1e-6, 1e-12}));

TEST(Woodbury, TakesAnyPositiveDiagonal) {
  const Index n = 50;
  const Matrix f = random_matrix(n, 8, 1);
  const Vector d = random_matrix(n, 1, 2).array().square() + 0.1;
  const Matrix p = f * f.transpose() + Matrix(d.asDiagonal());
  const Woodbury woodbury(Matrix(f), d);
  const Matrix v = random_matrix(n, 3, 3);
  Matrix z(n, 3);
  woodbury.solve(p * v, z);
  EXPECT_LE((z - v).norm(), 1e-11 * v.norm());
  EXPECT_NEAR(woodbury.log_det(), p.ldlt().vectorD().array().log().sum(), 1e-10);
}

TEST(Woodbury, LeavesOutDirectionsThatAreNotThere) {
  Matrix f = random_matrix(40, 6, 1);
  f.col(4) = f.col(1);
  f.col(5).setZero();
  const Matrix p = f * f.transpose() + 0.1 * Matrix::Identity(40, 40);
  const Woodbury woodbury(Matrix(f), 0.1);
  EXPECT_EQ(woodbury.rank(), 4);
  EXPECT_EQ(woodbury.dropped(), 2);
  const Matrix v = random_matrix(40, 1, 3);
  Matrix z(40, 1);
  woodbury.solve(p * v, z);
  EXPECT_LE((z - v).norm(), 1e-10 * v.norm());
}

TEST(Woodbury, WithoutColumnsIsTheDiagonal) {
  const Woodbury woodbury(Matrix(5, 0), 4.0);
  Matrix z(5, 1);
  woodbury.solve(Matrix::Ones(5, 1), z);
  EXPECT_TRUE(z.isApprox(Matrix::Constant(5, 1, 0.25)));
  EXPECT_DOUBLE_EQ(woodbury.log_det(), 5 * std::log(4.0));
}

TEST(Woodbury, SameBitsOnAnyNumberOfThreads) {
  const Matrix f = decaying_factor(5000, 40, 1e-4), r = random_matrix(5000, 12, 5);
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    results.emplace_back(5000, 12);
    Woodbury(Matrix(f), 1e-6).solve(r, results.back());
  }
  EXPECT_TRUE(testing::same_bits(results[0], results[1]));
  EXPECT_TRUE(testing::same_bits(results[0], results[2]));
}

TEST(Woodbury, RefusesANoiseThatIsNotPositive) {
  EXPECT_THROW(Woodbury(Matrix::Ones(3, 1), 0.0), InvalidArgument);
  EXPECT_THROW(Woodbury(Matrix::Ones(3, 1), -1.0), InvalidArgument);
  EXPECT_THROW(Woodbury(Matrix::Ones(3, 1), Vector(Vector::Ones(2))), DimensionMismatch);
}

}  // namespace woodbury_test
}  // namespace mercer::preconditioners
