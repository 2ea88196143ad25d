#include "mercer/krylov/cg.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "tests/krylov/allocations.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace cg_test {

using linalg::DenseOperator;
using testing::ColumnwiseOperator;
using testing::random_matrix;
using testing::same_bits;
using testing::spd_matrix;

/// P = D, the simplest thing that is not a multiple of I.
class DiagonalPreconditioner final : public linalg::Preconditioner {
 public:
  explicit DiagonalPreconditioner(Vector d) : d_(std::move(d)) {}
  Index size() const override { return d_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = d_.cwiseInverse().asDiagonal() * r;
  }
  double log_det() const override { return d_.array().log().sum(); }
  void sample(Rng& rng, MatrixView z) const override {
    rng.fill_normal(z);
    z = d_.cwiseSqrt().asDiagonal() * z;
  }

 private:
  Vector d_;
};

TEST(Cg, FinishesInAsManyIterationsAsThereAreDistinctEigenvalues) {
  Vector eigenvalues = Vector::Constant(50, 1.0);
  eigenvalues.head(10).setConstant(7.0);
  eigenvalues.tail(10).setConstant(0.2);
  const DenseOperator a(testing::matrix_with_spectrum(eigenvalues, 1));
  const Matrix b = random_matrix(50, 1, 2);
  Matrix x = Matrix::Zero(50, 1);
  const auto result = cg(a, b, x, {.tolerance = 1e-12});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 3);
}

TEST(Cg, TheExactDiagonalPreconditionsADiagonalMatrixInOneStep) {
  Vector d(40);
  for (Index i = 0; i < 40; ++i) d(i) = std::pow(10.0, double(i) / 5);
  const DenseOperator a(d.asDiagonal());
  const DiagonalPreconditioner p(d);
  const Matrix b = random_matrix(40, 2, 3);
  Matrix x = Matrix::Zero(40, 2);
  const auto result = cg(a, b, x, {.tolerance = 1e-12}, {.preconditioner = &p});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 1);
}

TEST(Cg, ColumnsOfABlockAreTheSingleSolvesBitForBit) {
  const ColumnwiseOperator a(spd_matrix(120, 1e4, 4));
  Matrix b = random_matrix(120, 5, 5);
  b.col(2).setZero();
  Matrix x = Matrix::Zero(120, 5);
  x.col(3) = random_matrix(120, 1, 6);  // a first guess for one of them
  const Matrix guess = x;
  const auto block = cg(a, b, x, {.tolerance = 1e-9, .residual_replacement_interval = 7});
  EXPECT_TRUE(block.converged());
  for (Index j = 0; j < 5; ++j) {
    Matrix one = guess.col(j);
    const auto single =
        cg(a, b.col(j), one, {.tolerance = 1e-9, .residual_replacement_interval = 7});
    EXPECT_TRUE(same_bits(one, x.col(j))) << j;
    EXPECT_EQ(single.iterations, block.column_iterations[static_cast<std::size_t>(j)]);
  }
}

TEST(Cg, SameBitsOnAnyNumberOfThreads) {
  const Index n = 400;
  const DenseOperator a(spd_matrix(n, 30, 4));
  const Matrix b = random_matrix(n, 700, 5);  // wide enough for parallel vector updates
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    results.push_back(Matrix::Zero(n, 700));
    cg(a, b, results.back());
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  EXPECT_TRUE(same_bits(results[0], results[2]));
}

TEST(Cg, CountsEveryProduct) {
  const ColumnwiseOperator a(spd_matrix(60, 100, 4));
  const Matrix b = random_matrix(60, 3, 5);
  Matrix x = random_matrix(60, 3, 6);
  const auto result = cg(a, b, x, {.residual_replacement_interval = 10});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.matvecs, a.products);
  // A first residual, one per iteration, a replacement every ten, a check at the end.
  std::int64_t most = 0;
  for (const auto k : result.column_iterations) most += 1 + k + k / 10 + 2;
  EXPECT_LE(result.matvecs, most);
}

TEST(Cg, HistoryHasOneRowPerIterationAndEndsAtTheResidual) {
  const DenseOperator a(spd_matrix(60, 100, 4));
  const Matrix b = random_matrix(60, 1, 5);
  Matrix x = Matrix::Zero(60, 1);
  int calls = 0;
  const auto result = cg(a, b, x, {.tolerance = 1e-5}, {.observer = [&](const Iteration& it) {
                           EXPECT_EQ(it.number, ++calls);
                           EXPECT_DOUBLE_EQ(it.target, 1e-5);  // |b| times it, divided by |b|
                           return Action::proceed;
                         }});
  EXPECT_EQ(result.residuals.rows(), result.iterations);
  EXPECT_EQ(calls, result.iterations);
  // The last row is the recurrence; well above rounding it agrees with b - A x.
  EXPECT_NEAR(result.residuals(result.iterations - 1, 0), result.relative_residual, 1e-12);
}

TEST(Cg, TheRmsToleranceIsTheSeedRule) {
  const DenseOperator a(spd_matrix(60, 100, 4));
  const Matrix b = 3.0 * random_matrix(60, 1, 5);
  Matrix x = Matrix::Zero(60, 1);
  const auto result = cg(a, b, x, {.rms_tolerance = 1e-5});
  EXPECT_TRUE(result.converged());
  const double r2 = (b - a.matrix() * x).squaredNorm();
  EXPECT_LE(r2, 1e-10 * 60 * (1 + 1e-9));
  EXPECT_GE(result.residuals(result.iterations - 2, 0) * b.norm(), 1e-5 * std::sqrt(60.0));
}

TEST(Cg, AClaimThatIsNotTrueIsRefused) {
  // With a tolerance below eps |A| |x| / |b| the recurrence goes on falling while b - A x does not:
  // the answer may only be called converged if it is.
  const Matrix m = spd_matrix(100, 1e6, 7);
  const DenseOperator a(m);
  const Matrix b = random_matrix(100, 1, 8);
  Matrix x = Matrix::Zero(100, 1);
  const auto result =
      cg(a, b, x, {.tolerance = 1e-14, .max_iterations = 50000, .stagnation_window = 50000});
  EXPECT_GT(result.restarts, 0);
  // Whether it ends by stagnation or at the limit of iterations depends on the last digits.
  EXPECT_NE(result.stop, StopReason::converged);
  // Two products in another order differ by N 2^-53 |A| |x| at most, which is all that is left
  // here.
  const double rounding = std::ldexp(100.0, -53) * (m.cwiseAbs() * x.cwiseAbs()).norm();
  EXPECT_NEAR(result.residual_norms(0), (b - m * x).norm(), 2 * rounding);
  EXPECT_LE(result.relative_residual, 1e-9);
}

TEST(Cg, GivesUpWhenTheResidualNoLongerHalves) {
  const DenseOperator a(spd_matrix(200, 1e12, 7));
  const Matrix b = random_matrix(200, 1, 8);
  Matrix x = Matrix::Zero(200, 1);
  const auto result =
      cg(a, b, x, {.tolerance = 1e-12, .max_iterations = 100000, .stagnation_window = 60});
  EXPECT_EQ(result.stop, StopReason::stagnation);
  EXPECT_LT(result.iterations, 100000);
}

TEST(Cg, HugeAndTinyRightHandSidesDoNotOverflow) {
  const DenseOperator a(spd_matrix(30, 50, 9));
  const Matrix unit = random_matrix(30, 1, 10);
  Matrix expected = Matrix::Zero(30, 1);
  cg(a, unit, expected, {.tolerance = 1e-10});
  for (const int power : {-900, 900}) {
    const double factor = std::ldexp(1.0, power);
    Matrix x = Matrix::Zero(30, 1);
    const auto result = cg(a, unit * factor, x, {.tolerance = 1e-10});
    EXPECT_TRUE(result.converged());
    EXPECT_TRUE((x / factor).isApprox(expected, 1e-9));
    EXPECT_LE(result.relative_residual, 1e-10);
  }
}

TEST(Cg, IterationsAllocateNothing) {
  const Index n = 300;
  const DenseOperator a(spd_matrix(n, 1e6, 11));
  const DiagonalPreconditioner p(Vector::Ones(n));
  const Matrix b = random_matrix(n, 900, 12);  // large enough for the parallel loops
  const testing::WithThreads scope(2);
  long first = 0, last = 0;
  for (int warm = 0; warm < 2; ++warm) {
    Matrix x = Matrix::Zero(n, 900);
    cg(a, b, x, {.tolerance = 1e-14, .max_iterations = 25, .residual_replacement_interval = 10},
       {.preconditioner = &p, .observer = [&](const Iteration& it) {
          (it.number == 1 ? first : last) = testing::allocation_count();
          return Action::proceed;
        }});
  }
  EXPECT_EQ(first, last);
}

TEST(Cg, KeepsTheCoefficientsOfTheLanczosMatrix) {
  // T of Lanczos from alpha and beta has the same extreme eigenvalues as A once CG has converged.
  const Matrix m = spd_matrix(30, 20, 13);
  const Matrix b = random_matrix(30, 2, 14);
  Matrix x = Matrix::Zero(30, 2);
  const auto result = cg(DenseOperator(m), b, x, {.tolerance = 1e-13, .keep_coefficients = true});
  ASSERT_EQ(result.coefficients.size(), 2u);
  const auto& c = result.coefficients[1];
  ASSERT_EQ(c.lanczos_steps(), c.alpha.size());
  const auto k = static_cast<Index>(c.alpha.size());
  EXPECT_EQ(k, result.column_iterations[1]);
  Matrix t = Matrix::Zero(k, k);
  for (Index i = 0; i < k; ++i) {
    const auto u = static_cast<std::size_t>(i);
    t(i, i) = 1 / c.alpha[u] + (i > 0 ? c.beta[u] / c.alpha[u - 1] : 0.0);
    if (i > 0) t(i, i - 1) = t(i - 1, i) = std::sqrt(c.beta[u]) / c.alpha[u - 1];
  }
  const auto ritz = linalg::symmetric_eigen(t).values;
  EXPECT_NEAR(ritz(k - 1), 1.0, 1e-8);
  EXPECT_NEAR(ritz(0), 1.0 / 20, 1e-8);
}

TEST(Cg, RefusesWhatItCannotUse) {
  const DenseOperator a(Matrix::Identity(3, 3));
  Matrix x = Matrix::Zero(3, 1);
  EXPECT_THROW(cg(a, Matrix::Zero(4, 1), x), DimensionMismatch);
  EXPECT_THROW(cg(a, Matrix::Zero(3, 2), x), DimensionMismatch);
  EXPECT_THROW(cg(a, Matrix::Zero(3, 1), x, {.tolerance = -1}), InvalidArgument);
  Matrix b = Matrix::Zero(3, 1);
  b(1, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(cg(a, b, x), InvalidArgument);
}

TEST(Cg, NoColumnsAreNoWork) {
  Matrix x(3, 0);
  EXPECT_TRUE(cg(DenseOperator(Matrix::Identity(3, 3)), Matrix(3, 0), x).converged());
}

}  // namespace cg_test
}  // namespace mercer::krylov
