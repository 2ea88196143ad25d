#include "mercer/krylov/kernel_cg.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "tests/krylov/allocations.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace kernel_cg_test {

using linalg::DenseOperator;
using testing::ColumnwiseOperator;
using testing::random_matrix;
using testing::same_bits;
using testing::spd_matrix;

constexpr RegularizedLoss squares(double lambda) { return {KernelLoss::squared, lambda}; }
constexpr RegularizedLoss logistic(double lambda) { return {KernelLoss::logistic, lambda}; }

using Method = KernelCgResult (*)(const linalg::LinearOperator&, const RegularizedLoss&,
                                  ConstMatrixView, MatrixView, const KernelCgOptions&,
                                  const Observer&);
const std::vector<Method> both = {kernel_cg, coefficient_cg};

/// exp(-|x - x'|^2 / 2) at the rows of x.
Matrix gaussian_kernel(const Matrix& x) {
  Matrix k(x.rows(), x.rows());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.rows(); ++j)
      k(i, j) = std::exp(-0.5 * (x.row(i) - x.row(j)).squaredNorm());
  return k;
}

/// Labels -1 and +1: the side of a curve, a tenth of them turned over.
Matrix labels(const Matrix& x, Index columns) {
  Matrix y(x.rows(), columns);
  const Matrix noise = random_matrix(x.rows(), columns, 3, "labels");
  for (Index j = 0; j < columns; ++j)
    for (Index i = 0; i < x.rows(); ++i) {
      const double side = std::sin(2 * x(i, 0)) + x(i, 1) - 0.2 * double(j);
      y(i, j) = (side > 0) == (noise(i, j) > -1.28) ? 1.0 : -1.0;
    }
  return y;
}

double objective(const Matrix& k, const RegularizedLoss& p, const Vector& y, const Vector& alpha) {
  const Vector f = k * alpha;
  double sum = 0.5 * p.lambda * alpha.dot(f);
  for (Index i = 0; i < y.size(); ++i)
    sum += p.loss == KernelLoss::squared
               ? 0.5 * (f(i) - y(i)) * (f(i) - y(i))
               : std::max(-y(i) * f(i), 0.0) + std::log1p(std::exp(-std::abs(f(i))));
  return sum;
}

Vector exact_squares(const Matrix& k, double lambda, const Vector& y) {
  return (k + lambda * Matrix::Identity(k.rows(), k.rows())).llt().solve(y);
}

/// Newton's method with dense algebra: alpha <- (K + lambda W^-1)^-1 (f + W^-1 y p).
Vector exact_logistic(const Matrix& k, double lambda, const Vector& y) {
  Vector alpha = Vector::Zero(y.size());
  for (int step = 0; step < 100; ++step) {
    const Vector f = k * alpha;
    const Eigen::ArrayXd p = 1 / (1 + (y.array() * f.array()).exp());
    const Eigen::ArrayXd w = p * (1 - p);
    const Vector gamma = lambda * alpha - (y.array() * p).matrix();
    Matrix jacobian = w.matrix().asDiagonal() * k;
    jacobian.diagonal().array() += lambda;
    alpha -= jacobian.partialPivLu().solve(gamma);
    if (gamma.norm() < 1e-13 * std::sqrt(double(y.size()))) break;
  }
  return alpha;
}

double condition(const Matrix& a) {
  const Vector e = Eigen::SelfAdjointEigenSolver<Matrix>(a, Eigen::EigenvaluesOnly).eigenvalues();
  return e(e.size() - 1) / e(0);
}

/// The first iteration whose objective is within `excess` of the optimum, relatively.
int iterations_to(const KernelCgResult& r, double optimum, double excess) {
  for (Index k = 0; k < r.objectives.rows(); ++k)
    if (r.objectives(k, 0) - optimum <= excess * optimum) return static_cast<int>(k);
  return std::numeric_limits<int>::max();
}

TEST(KernelCg, LeastSquaresAreTheDenseSolution) {
  const Matrix k = spd_matrix(80, 1e3, 1);
  const Matrix y = random_matrix(80, 3, 2);
  for (const Method method : both) {
    Matrix alpha = Matrix::Zero(80, 3);
    const auto r = method(DenseOperator(k), squares(1e-2), y, alpha, {.tolerance = 1e-12}, {});
    EXPECT_TRUE(r.converged());
    for (Index j = 0; j < 3; ++j) {
      const Vector exact = exact_squares(k, 1e-2, y.col(j));
      const double best = objective(k, squares(1e-2), y.col(j), exact);
      EXPECT_NEAR(r.objective(j), best, 1e-11 * best);
      EXPECT_NEAR(r.objective(j), objective(k, squares(1e-2), y.col(j), alpha.col(j)),
                  1e-13 * best);
      // P - min P >= lambda/2 |f - f*|^2 in the function space; f is what a user sees.
      const double scale = (k * exact).norm();
      EXPECT_LE((k * (alpha.col(j) - exact)).norm(), 1e-4 * scale);
    }
  }
}

TEST(KernelCg, LogisticRegressionIsNewtonsSolution) {
  const Matrix x = random_matrix(70, 2, 4);
  const Matrix k = gaussian_kernel(x), y = labels(x, 2);
  for (const double lambda : {1.0, 1e-2}) {
    Matrix alpha = Matrix::Zero(70, 2);
    const auto r = kernel_cg(DenseOperator(k), logistic(lambda), y, alpha, {.tolerance = 1e-12});
    EXPECT_TRUE(r.converged());
    for (Index j = 0; j < 2; ++j) {
      const Vector exact = exact_logistic(k, lambda, y.col(j));
      const double best = objective(k, logistic(lambda), y.col(j), exact);
      EXPECT_NEAR(r.objective(j), best, 1e-11 * best);
      EXPECT_LE((k * (alpha.col(j) - exact)).norm(), 1e-4 * (k * exact).norm());
    }
  }
}

TEST(KernelCg, TheGapBoundsTheTrueDistanceAtEveryIteration) {
  const Matrix x = random_matrix(70, 2, 4);
  const Matrix k = gaussian_kernel(x), y = labels(x, 1);
  for (const auto& problem : {squares(1e-1), squares(1e-4), logistic(1.0), logistic(1e-3)}) {
    const bool quadratic = problem.loss == KernelLoss::squared;
    const Vector exact =
        quadratic ? exact_squares(k, problem.lambda, y) : exact_logistic(k, problem.lambda, y);
    const double best = objective(k, problem, y, exact);
    // Rounding of P: u = K alpha is kept by a recurrence, so that i steps and a product leave
    // errors in u_j of standard deviation at most sqrt(i + N) 2^-53 (|K| |alpha|)_j, independent
    // ones (Higham and Mary, 2019). P depends on u by loss' + lambda alpha / 2, and loss' = -lambda
    // alpha at the optimum. Six standard deviations: a false alarm in 10^9.
    const Vector sizes = exact.cwiseAbs().cwiseProduct(k * exact.cwiseAbs());
    const double size = 6 * (1.5 * problem.lambda * sizes.norm() + best);
    for (const Method method : both) {
      Matrix alpha = Matrix::Zero(70, 1);
      const auto r = method(DenseOperator(k), problem, y, alpha,
                            {.tolerance = 1e-9, .max_iterations = 300}, {});
      ASSERT_EQ(r.objectives.rows(), r.iterations + 1);
      for (Index i = 0; i < r.objectives.rows(); ++i) {
        const double rounding = std::ldexp(std::sqrt(double(i + 70)), -53) * size;
        EXPECT_LE(r.objectives(i, 0) - best, r.gaps(i, 0) + rounding) << i;
        EXPECT_GE(r.objectives(i, 0), best - rounding) << i;
        if (i > 0) {
          EXPECT_LE(r.objectives(i, 0), r.objectives(i - 1, 0) + rounding) << i;
        }
      }
    }
  }
}

TEST(KernelCg, TheLeastSquaresGapIsHalfTheSquaredGradient) {
  // P - D = |gamma|^2 / 2 with D = lambda (y'alpha - alpha'(u + lambda alpha) / 2).
  const Matrix k = spd_matrix(30, 10, 1);
  const Vector y = random_matrix(30, 1, 2), alpha = random_matrix(30, 1, 3), u = k * alpha;
  const double lambda = 50;  // large, so that this bound is the smaller one
  const double p = objective(k, squares(lambda), y, alpha);
  const double d = lambda * (y.dot(alpha) - 0.5 * alpha.dot(u + lambda * alpha));
  Matrix guess = alpha;
  const auto r = kernel_cg(DenseOperator(k), squares(lambda), y, guess, {.max_iterations = 1});
  EXPECT_NEAR(p - d, 0.5 * (u - y + lambda * alpha).squaredNorm(), 1e-10 * p);
  EXPECT_LE(r.gaps(0, 0), (p - d) * (1 + 1e-12));
  EXPECT_LE(d, objective(k, squares(lambda), y, exact_squares(k, lambda, y)));
}

TEST(KernelCg, OneProductAnIterationAndTwoForCoefficients) {
  const ColumnwiseOperator k(spd_matrix(60, 1e3, 4));
  const Matrix y = random_matrix(60, 1, 5);
  for (const auto& problem : {squares(1e-3), logistic(1e-3)}) {
    const Matrix target = problem.loss == KernelLoss::squared ? y : Matrix(y.cwiseSign());
    for (int products = 1; products <= 2; ++products) {
      Matrix alpha = Matrix::Zero(60, 1);
      std::vector<Index> counts;
      const auto r = both[static_cast<std::size_t>(products - 1)](
          k, problem, target, alpha, {.tolerance = 1e-12, .max_iterations = 40},
          [&](const Iteration&) {
            counts.push_back(k.products);
            return Action::proceed;
          });
      ASSERT_GE(counts.size(), 12u);
      for (std::size_t i = 1; i < 12; ++i) EXPECT_EQ(counts[i] - counts[i - 1], products);
      EXPECT_LE(r.matvecs, products * r.iterations + 3);  // the first gradient, a check at the end
      EXPECT_EQ(r.matvecs, k.products);
      k.products = 0;
    }
  }
}

// Theorem 1 of the paper. In orthonormal coordinates K^1/2 alpha the Hessian of P is
// F = K^1/2 C K^1/2 + lambda I, C the curvatures of the losses; in alpha it is K^1/2 F K^1/2.
TEST(KernelCg, CoefficientsSeeTheConditionNumberOfTheKernelOnceMore) {
  const Matrix k = spd_matrix(40, 1e3, 6);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(k);
  const Matrix root = eigen.operatorSqrt();
  const Matrix one = Matrix::Identity(40, 40);
  for (const double lambda : {1.0, 1e-2}) {
    const Matrix functions = k + lambda * one, parameters = k * k + lambda * k;
    EXPECT_LE((root * functions * root - parameters).norm(), 1e-12);
    // Least squares: F and K share eigenvectors, so the bound is attained.
    EXPECT_NEAR(condition(parameters) / (condition(k) * condition(functions)), 1.0, 1e-7);
    const Vector c = random_matrix(40, 1, 7).cwiseAbs2().cwiseMin(0.25);
    const Matrix f = root * c.asDiagonal() * root + lambda * one;
    const Matrix p = k * c.asDiagonal() * k + lambda * k;
    EXPECT_LE((root * f * root - p).norm(), 1e-12);
    EXPECT_LE(condition(p), condition(k) * condition(f) * (1 + 1e-7));
    EXPECT_GT(condition(p), condition(f));
  }
}

TEST(KernelCg, NeedsAboutTheSquareRootOfTheIterations) {
  // Condition 300: kernel_cg sees 300 / (1 + 300 lambda), the other its product with 300.
  const Index n = 400;
  const Matrix k = spd_matrix(n, 300, 8), y = k * random_matrix(n, 1, 9);
  const double lambda = 1e-4;
  const double best = objective(k, squares(lambda), y, exact_squares(k, lambda, y));
  std::vector<int> iterations;
  for (const Method method : both) {
    Matrix alpha = Matrix::Zero(n, 1);
    const auto r = method(DenseOperator(k), squares(lambda), y, alpha,
                          {.tolerance = 1e-13, .max_iterations = 20000}, {});
    iterations.push_back(iterations_to(r, best, 1e-6));
  }
  RecordProperty("kernel_cg", iterations[0]);
  RecordProperty("coefficient_cg", iterations[1]);
  EXPECT_GE(iterations[1], 4 * iterations[0]);
  EXPECT_GE(2.0 * iterations[1], iterations[0] * std::sqrt(double(iterations[0])));
}

TEST(KernelCg, LeastSquaresFollowConjugateGradientsOnTheShiftedMatrix) {
  // Both search the same Krylov space; P is minimised over it by one, the energy norm by the other.
  const Matrix k = spd_matrix(100, 1e4, 8), y = random_matrix(100, 1, 9);
  const double lambda = 1e-3;
  const double best = objective(k, squares(lambda), y, exact_squares(k, lambda, y));
  Matrix alpha = Matrix::Zero(100, 1), x = alpha;
  const auto r = kernel_cg(DenseOperator(k), squares(lambda), y, alpha, {.tolerance = 1e-10});
  const linalg::DenseOperator plain(k);
  const linalg::ShiftedOperator shifted(plain, lambda);
  for (const int steps : {5, 15, 25}) {
    x.setZero();
    cg(shifted, y, x, {.tolerance = 1e-14, .max_iterations = steps});
    EXPECT_LE(r.objectives(steps, 0), objective(k, squares(lambda), y, x) * (1 + 1e-12));
  }
  EXPECT_NEAR(r.objective(0), best, 1e-9 * best);
}

TEST(KernelCg, SeparableDataWithLittleRegularisationStayFinite) {
  const Matrix x = 2 * random_matrix(60, 2, 4);
  const Matrix k = gaussian_kernel(x);
  Matrix y(60, 1);
  for (Index i = 0; i < 60; ++i) y(i, 0) = x(i, 0) > 0 ? 1 : -1;
  Matrix alpha = Matrix::Zero(60, 1);
  const auto r = kernel_cg(DenseOperator(k), logistic(1e-8), y, alpha,
                           {.tolerance = 1e-3, .max_iterations = 3000});
  EXPECT_TRUE(alpha.allFinite());
  EXPECT_TRUE(std::isfinite(r.objective(0)));
  EXPECT_NE(r.stop, StopReason::breakdown);
  // Functions that interpolate c y, nearly: the optimum is below each of them.
  double least = std::numeric_limits<double>::infinity();
  for (const double c : {4.0, 8.0, 12.0, 16.0})
    for (const double nugget : {1e-8, 1e-6, 1e-4, 1e-2})
      least = std::min(least, objective(k, logistic(1e-8), y, exact_squares(k, nugget, c * y)));
  EXPECT_LE(r.objective(0), least + r.gap(0));
  // From 60 log 2. Two points d apart on either side cost lambda / 2 (2 m / d)^2 for margins of m =
  // 5, so that this needs d > 1e-3, which one set of 60 points in 10^4 lacks.
  EXPECT_LT(r.objective(0), 0.3);
  // No loss log(1 + exp(-margin)) exceeds the sum of all.
  EXPECT_GE((y.array() * (k * alpha).array()).minCoeff(),
            -std::log(std::expm1(r.objective(0))) * (1 - 1e-9));
}

TEST(KernelCg, ColumnsOfABlockAreTheSingleRunsBitForBit) {
  const Matrix x = random_matrix(60, 2, 4);
  const ColumnwiseOperator k(gaussian_kernel(x));
  const Matrix y = labels(x, 4);
  for (const auto& problem : {squares(1e-2), logistic(1e-1)})
    for (const Method method : both) {
      Matrix alpha = Matrix::Zero(60, 4);
      alpha.col(2) = 0.1 * random_matrix(60, 1, 6);  // a first guess for one of them
      const Matrix guess = alpha;
      const KernelCgOptions options{
          .tolerance = 1e-5, .max_iterations = 200, .refresh_interval = 7};
      const auto block = method(k, problem, y, alpha, options, {});
      for (Index j = 0; j < 4; ++j) {
        Matrix one = guess.col(j);
        const auto single = method(k, problem, y.col(j), one, options, {});
        EXPECT_TRUE(same_bits(one, alpha.col(j))) << j;
        EXPECT_EQ(single.iterations, block.column_iterations[static_cast<std::size_t>(j)]);
        EXPECT_EQ(single.stop, block.column_stops[static_cast<std::size_t>(j)]);
      }
    }
}

TEST(KernelCg, DuplicatePointsMakeASingularKernel) {
  Matrix x = random_matrix(60, 2, 4);
  for (Index i = 1; i < 60; i += 2) x.row(i) = x.row(i - 1);
  const Matrix k = gaussian_kernel(x), y = labels(x, 1);  // some pairs with unlike labels
  for (const auto& problem : {squares(1e-2), logistic(1e-2)}) {
    const bool quadratic = problem.loss == KernelLoss::squared;
    const Vector exact =
        quadratic ? exact_squares(k, problem.lambda, y) : exact_logistic(k, problem.lambda, y);
    const double best = objective(k, problem, y, exact);
    for (const Method method : both) {
      Matrix alpha = Matrix::Zero(60, 1);
      const auto r = method(DenseOperator(k), problem, y, alpha,
                            {.tolerance = 1e-6, .max_iterations = 20000}, {});
      // Conjugate gradients on coefficients see the condition number of K once more: a singular K
      // may take them longer than this.
      if (method == Method{kernel_cg}) {
        EXPECT_TRUE(r.converged());
      }
      EXPECT_LE(r.objective(0) - best, r.gap(0) + 1e-10 * best);
      if (r.converged()) {
        EXPECT_LE(r.objective(0) - best, 1.1e-6 * best);
      } else {
        EXPECT_GT(r.relative_gap(0), 1e-6);
      }
    }
  }
}

TEST(KernelCg, AnUnreachableToleranceEndsByStagnation) {
  const Matrix k = spd_matrix(50, 1e5, 8), y = random_matrix(50, 1, 9);
  for (const auto& problem : {squares(1e-4), logistic(1e-4)}) {
    const Matrix target = problem.loss == KernelLoss::squared ? y : Matrix(y.cwiseSign());
    Matrix alpha = Matrix::Zero(50, 1);
    const auto r = kernel_cg(DenseOperator(k), problem, target, alpha,
                             {.tolerance = 1e-40, .max_iterations = 100000});
    EXPECT_EQ(r.stop, StopReason::stagnation);
    EXPECT_LE(r.relative_gap(0), 1e-9);
  }
}

TEST(KernelCg, TheObserverSeesEveryIterationAndMayStop) {
  const DenseOperator k(spd_matrix(50, 1e6, 8));
  const Matrix y = random_matrix(50, 2, 9);
  for (const Method method : both) {
    Matrix alpha = Matrix::Zero(50, 2);
    int calls = 0;
    const auto r =
        method(k, squares(1e-6), y, alpha, {.tolerance = 1e-10}, [&](const Iteration& it) {
          EXPECT_EQ(it.number, ++calls);
          EXPECT_EQ(it.target, 1e-10);
          return calls == 5 ? Action::stop : Action::proceed;
        });
    EXPECT_EQ(r.stop, StopReason::interrupted);
    EXPECT_EQ(r.iterations, 5);
    // What is reported is of the alpha that is given back.
    for (Index j = 0; j < 2; ++j)
      EXPECT_NEAR(r.objective(j), objective(k.matrix(), squares(1e-6), y.col(j), alpha.col(j)),
                  1e-12 * r.objective(j));
  }
}

TEST(KernelCg, AZeroTargetIsDoneAtOnce) {
  const ColumnwiseOperator k(spd_matrix(20, 10, 8));
  Matrix y = random_matrix(20, 2, 9), alpha = Matrix::Zero(20, 2);
  y.col(0).setZero();
  const auto r = kernel_cg(k, squares(0.1), y, alpha);
  EXPECT_TRUE(r.converged());
  EXPECT_EQ(r.column_iterations[0], 0);
  EXPECT_TRUE(alpha.col(0).isZero(0));
  EXPECT_EQ(r.gap(0), 0);
  EXPECT_GT(r.column_iterations[1], 0);
}

TEST(KernelCg, AGuessThatIsTheAnswerIsDoneAtOnce) {
  const Matrix k = spd_matrix(30, 10, 8), y = random_matrix(30, 1, 9);
  Matrix alpha = exact_squares(k, 0.1, y);
  const auto r = kernel_cg(DenseOperator(k), squares(0.1), y, alpha);
  EXPECT_TRUE(r.converged());
  EXPECT_EQ(r.iterations, 0);
  EXPECT_EQ(r.matvecs, 2);
}

TEST(KernelCg, IterationsAllocateNothing) {
  const Index n = 300;
  const DenseOperator k(spd_matrix(n, 1e6, 11));
  const Matrix y = random_matrix(n, 900, 12).cwiseSign();  // large enough for the parallel loops
  const testing::WithThreads scope(2);
  for (const auto& problem : {squares(1e-5), logistic(1e-5)})
    for (const Method method : both) {
      long first = 0, last = 0;
      for (int warm = 0; warm < 2; ++warm) {
        Matrix alpha = Matrix::Zero(n, 900);
        method(k, problem, y, alpha,
               {.tolerance = 1e-14, .max_iterations = 6, .refresh_interval = 3},
               [&](const Iteration& it) {
                 (it.number == 1 ? first : last) = testing::allocation_count();
                 return Action::proceed;
               });
      }
      EXPECT_EQ(first, last);
    }
}

TEST(KernelCg, RefusesWhatItCannotUse) {
  const DenseOperator k(Matrix::Identity(3, 3));
  Matrix alpha = Matrix::Zero(3, 1);
  const Matrix y = Matrix::Ones(3, 1);
  EXPECT_THROW(kernel_cg(k, squares(1), Matrix::Zero(4, 1), alpha), DimensionMismatch);
  EXPECT_THROW(kernel_cg(k, squares(1), Matrix::Zero(3, 2), alpha), DimensionMismatch);
  EXPECT_THROW(kernel_cg(k, squares(0), y, alpha), InvalidArgument);
  EXPECT_THROW(kernel_cg(k, squares(1), y, alpha, {.tolerance = -1}), InvalidArgument);
  EXPECT_THROW(kernel_cg(k, logistic(1), 2 * y, alpha), InvalidArgument);
  const Matrix bad = std::numeric_limits<double>::quiet_NaN() * y;
  EXPECT_THROW(kernel_cg(k, squares(1), bad, alpha), InvalidArgument);
  Matrix none(3, 0);
  EXPECT_TRUE(kernel_cg(k, squares(1), Matrix(3, 0), none).converged());
}

}  // namespace kernel_cg_test
}  // namespace mercer::krylov
