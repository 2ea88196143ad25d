#include "mercer/inference/pathwise.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::inference {
namespace pathwise_test {

using testing::random_matrix;
using testing::same_bits;
using testing::WithThreads;

// Small, dense, with a noise for each point.
struct Posterior {
  Posterior(const char* kernel, MeanKind mean, Index n = 25)
      : problem{kernels::Kernel::parse(kernel, 2), 0.1, mean},
        x(random_matrix(n, 2, 1)),
        noise(Vector::LinSpaced(n, 0.05, 0.2)) {
    Matrix h = problem.kernel.reference_matrix(x, x);
    h.diagonal() += noise;
    llt.compute(h);
    const Matrix a = problem.basis(x);
    weights.basis_solves = llt.solve(a);
    if (a.cols() > 0) weights.beta_covariance = (a.transpose() * weights.basis_solves).inverse();
  }

  PathwiseDraws draws(const PathwiseOptions& options) const {
    return {problem, x,       noise,
            weights, options, [&](ConstMatrixView b, MatrixView u) { u = llt.solve(b); }};
  }

  /// Posterior covariance of f at the rows of `at`, universal kriging.
  Matrix covariance(const Matrix& at) const {
    const auto& kernel = problem.kernel;
    const Matrix k = kernel.reference_matrix(x, at);
    Matrix out = kernel.reference_matrix(at, at) - k.transpose() * llt.solve(k);
    if (weights.basis_solves.cols() == 0) return out;
    const Matrix q = problem.basis(at).transpose() - weights.basis_solves.transpose() * k;
    return out + q.transpose() * weights.beta_covariance * q;
  }

  Problem problem;
  Matrix x;
  Vector noise;
  Eigen::LLT<Matrix> llt;
  Weights weights;
};

struct Case {
  const char* kernel;
  MeanKind mean;
};
class EveryPosterior : public ::testing::TestWithParam<Case> {};

// Over frequencies and weights the draws have the posterior's mean and covariance exactly, however
// few the features are. Each seed has its own of both, so seeds are independent and the standard
// error of their average can be measured: |t| stays below 5.5 for 400 seeds with a false alarm of
// about 1e-7 a number, 20 numbers in a case.
TEST_P(EveryPosterior, DrawsHaveItsMeanAndCovariance) {
  const Posterior posterior(GetParam().kernel, GetParam().mean);
  const Matrix at = 1.5 * random_matrix(5, 2, 2);
  const Matrix exact = posterior.covariance(at);
  constexpr Index seeds = 400, per_seed = 8;
  Matrix sum = Matrix::Zero(5, 6), squares = Matrix::Zero(5, 6);  // covariances, and the mean
  for (Index seed = 0; seed < seeds; ++seed) {
    const Matrix d =
        posterior
            .draws({.count = per_seed, .features = 50, .seed = static_cast<std::uint64_t>(seed)})
            .deviations(at);
    Matrix one(5, 6);
    one << d * d.transpose() / double(per_seed), d.rowwise().mean();
    sum += one;
    squares += one.cwiseAbs2();
  }
  const Matrix mean = sum / double(seeds);
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j < 6; ++j) {
      const double variance = squares(i, j) / double(seeds) - mean(i, j) * mean(i, j);
      const double truth = j < 5 ? exact(i, j) : 0.0;
      EXPECT_LE(std::abs(mean(i, j) - truth), 5.5 * std::sqrt(variance / double(seeds)) + 1e-12)
          << i << " " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Posteriors, EveryPosterior,
    ::testing::Values(Case{"rbf", MeanKind::zero}, Case{"matern12", MeanKind::zero},
                      Case{"matern32", MeanKind::constant}, Case{"matern52", MeanKind::linear},
                      Case{"rq", MeanKind::zero}, Case{"periodic", MeanKind::zero},
                      Case{"linear", MeanKind::zero}, Case{"poly:2", MeanKind::zero},
                      Case{"rbf + linear", MeanKind::constant},
                      Case{"matern32 * linear", MeanKind::zero},
                      Case{"matern32(0) * matern12(1)", MeanKind::zero}));

TEST(Pathwise, ADrawIsAFunction) {
  const Posterior posterior("matern32", MeanKind::constant);
  const auto draws = posterior.draws({.count = 6, .features = 300, .seed = 3});
  const Matrix at = random_matrix(700, 2, 5);  // several panels
  const Matrix whole = draws.deviations(at);
  Matrix pieces(700, 6);
  pieces << draws.deviations(at.topRows(123)), draws.deviations(at.bottomRows(577));
  // The same sums in other tiles: equal to rounding.
  EXPECT_LE((whole - pieces).cwiseAbs().maxCoeff(), 1e-12);
  // More draws do not change the first ones.
  const auto more = posterior.draws({.count = 9, .features = 300, .seed = 3}).deviations(at);
  EXPECT_LE((whole - more.leftCols(6)).cwiseAbs().maxCoeff(), 1e-11);
  const auto other = posterior.draws({.count = 6, .features = 300, .seed = 4}).deviations(at);
  EXPECT_GE((whole - other).cwiseAbs().maxCoeff(), 0.1);
}

TEST(Pathwise, SameBitsOnAnyNumberOfThreads) {
  const Posterior posterior("rbf", MeanKind::linear, 600);
  const Matrix at = random_matrix(600, 2, 5);
  const auto on = [&](int threads) {
    const WithThreads scope(threads);
    return posterior.draws({.count = 5, .features = 200}).deviations(at);
  };
  EXPECT_TRUE(same_bits(on(1), on(3)));
}

TEST(Pathwise, KernelsWithoutFeaturesAreRefusedWithTheReason) {
  const auto kernel = kernels::Kernel::parse("poly:6", 12);
  EXPECT_NE(PathwiseDraws::refusal(kernel).find("monomials"), std::string::npos);
  EXPECT_EQ(PathwiseDraws::refusal(kernels::Kernel::parse("rbf", 12)), "");
  const Posterior posterior("rbf", MeanKind::zero);
  EXPECT_THROW(posterior.draws({.count = 0}), InvalidArgument);
}

}  // namespace pathwise_test
}  // namespace mercer::inference
