#include "mercer/approximations/local_variance.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <numeric>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace local_variance_test {

using kernels::Kernel;
using testing::random_matrix;
using testing::same_bits;
using testing::WithThreads;

constexpr Index kPoints = 150, kInputs = 3;

/// k_J'(K_JJ + D_J)^-1 k_J for the columns of k.
Vector dense_explained(const Kernel& kernel, const Matrix& x, const Vector& noise,
                       const Matrix& at) {
  Matrix h = kernel.reference_matrix(x, x);
  h.diagonal() += noise;
  const Matrix k = kernel.reference_matrix(x, at);
  return (k.array() * h.llt().solve(k).array()).colwise().sum();
}

class EveryKernel : public ::testing::TestWithParam<const char*> {
 protected:
  Kernel kernel = Kernel::parse(GetParam(), kInputs);
  Matrix x = random_matrix(kPoints, kInputs, 1);
  Matrix at = random_matrix(40, kInputs, 2);
  // A noise for each point: 0.05 .. 0.15.
  Vector noise = Vector::LinSpaced(kPoints, 0.05, 0.15);
};

TEST_P(EveryKernel, GivenAllPointsIsExact) {
  const LocalVariance all(kernel, x, noise, 10 * kPoints);
  EXPECT_EQ(all.neighbours(), kPoints);
  const Vector exact = dense_explained(kernel, x, noise, at);
  EXPECT_LE((all.explained(at) - exact).cwiseAbs().maxCoeff(), 1e-10 * exact.maxCoeff());
}

TEST_P(EveryKernel, LessIsExplainedByFewerPoints) {
  const Vector exact = dense_explained(kernel, x, noise, at);
  const double rounding = 1e-12 * exact.maxCoeff();
  for (const Index m : {1, 7, 40}) {
    const Vector some = LocalVariance(kernel, x, noise, m).explained(at);
    EXPECT_GE(some.minCoeff(), 0);
    EXPECT_LE((some - exact).maxCoeff(), rounding) << m;
  }
}

TEST_P(EveryKernel, TakesTheMostCorrelated) {
  const Vector same = Vector::Constant(kPoints, 0.1);
  const Vector found = LocalVariance(kernel, x, same, 12).explained(at);
  const Matrix k = kernel.reference_matrix(x, at);
  const Vector deviation = (kernel.diagonal(x) + same).cwiseSqrt();
  for (Index i = 0; i < at.rows(); ++i) {
    const Vector correlation = k.col(i).cwiseAbs().cwiseQuotient(deviation);
    std::vector<Index> order(static_cast<std::size_t>(kPoints));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return correlation(a) > correlation(b); });
    order.resize(12);
    const Vector exact = dense_explained(kernel, x(order, Eigen::all), same.head(12), at.row(i));
    // Near ties in float32 may go the other way.
    EXPECT_NEAR(found(i), exact(0), 1e-4 * (1 + exact(0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel,
                         ::testing::Values("rbf", "matern12:iso", "matern32", "matern52", "rq",
                                           "periodic", "linear", "poly:2", "matern32 + linear",
                                           "rbf * periodic"));

TEST(LocalVariance, SameBitsOnAnyNumberOfThreadsAndInPieces) {
  for (const Index d : {2, 9}) {  // by tree and by tiles
    const auto kernel = Kernel::parse("matern32", d);
    const Matrix x = random_matrix(400, d, 3), at = random_matrix(333, d, 4);
    const LocalVariance local(kernel, x, Vector::Constant(400, 0.1), 20);
    const auto on = [&](int threads) {
      const WithThreads scope(threads);
      return local.explained(at);
    };
    const Vector one = on(1);
    EXPECT_TRUE(same_bits(one, on(3)));
    Vector pieces(333);
    pieces << local.explained(at.topRows(100)), local.explained(at.bottomRows(233));
    EXPECT_LE((pieces - one).cwiseAbs().maxCoeff(), 1e-12);
  }
}

TEST(LocalVariance, FarPointsAndRepeatedPointsAreFine) {
  for (const Index d : {2, 9}) {
    const auto kernel = Kernel::parse("rbf:iso", d);
    Matrix x = random_matrix(100, d, 5);
    x.bottomRows(50) = x.topRows(50);
    Matrix at = x.topRows(3);
    at.row(1).setConstant(1e200);
    at.row(2).setConstant(-1e30);
    // So little noise that the small matrices are singular in double.
    const Vector v = LocalVariance(kernel, x, Vector::Constant(100, 1e-18), 30).explained(at);
    EXPECT_NEAR(v(0), 1, 1e-5);
    EXPECT_EQ(v(1), 0);
    EXPECT_EQ(v(2), 0);
  }
}

TEST(LocalVariance, RefusesWhatMakesNoSense) {
  const auto kernel = Kernel::parse("rbf", 2);
  const Matrix x = random_matrix(10, 2, 1);
  EXPECT_THROW(LocalVariance(kernel, x, Vector::Ones(10), 0), InvalidArgument);
  EXPECT_THROW(LocalVariance(kernel, x, Vector::Ones(9), 5), DimensionMismatch);
}

}  // namespace local_variance_test
}  // namespace mercer::approximations
