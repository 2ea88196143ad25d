#include "mercer/inference/exact/gaussian_posterior.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/eigen.hpp>
#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"

namespace mercer::inference {
namespace gaussian_posterior_test {

// H with a noise variance of 1e-18 is not positive definite in double, so the factorisation adds
// jitter. Means of H itself, in a hundred digits, must lie within the bound.
TEST(GaussianPosterior, TheBoundCountsJitter) {
  using Real = boost::multiprecision::cpp_bin_float_100;
  using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const Index n = 24;
  Observations data{Matrix(n, 1), Matrix(n, 1)};
  Rng rng(3, "jitter");
  rng.fill_normal(data.x);
  rng.fill_normal(data.y);
  const Problem problem(kernels::Kernel::parse("rbf", 1), 1e-18);
  SystemChoice choice;
  choice.solver = "cholesky";
  const auto posterior = gaussian_posterior(problem, data, choice, 0, {}, {});
  ASSERT_GT(posterior.jitter, 0);
  EXPECT_EQ(posterior.certificate.jitter, posterior.jitter);

  const auto kernel = [&](double a, double b) -> Real {
    return exp(-(Real(a) - Real(b)) * (Real(a) - Real(b)) / 2);
  };
  RealMatrix h(n, n), y = data.y.cast<Real>();
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      h(i, j) = kernel(data.x(i, 0), data.x(j, 0)) + (i == j ? Real(1e-18) : Real(0));
  const RealMatrix exact = h.llt().solve(y);
  double worst = 0;
  for (double x = -2; x <= 2; x += 0.25) {
    Real difference = 0;
    for (Index j = 0; j < n; ++j)
      difference +=
          kernel(x, data.x(j, 0)) * (exact(j, 0) - Real(posterior.functions[0].weights.w(j)));
    worst = std::max(worst, std::abs(static_cast<double>(difference)));
  }
  EXPECT_LE(worst, posterior.certificate.mean_error_bound);
  EXPECT_GT(worst, 0.01) << "the jitter changed nothing, so nothing was tested";
}

// The value comes from the factor of the solve; a factorisation of its own gives the same.
// A solve that begins at the solution of a system close by takes fewer iterations to the same
// certified weights, the columns of a trend included.
TEST(GaussianPosterior, BeginsWhereAnotherEnded) {
  const Index n = 200;
  Observations data{Matrix(n, 2), Matrix(n, 1)};
  Rng rng(4, "warm posterior");
  rng.fill_normal(data.x);
  rng.fill_normal(data.y);
  SystemChoice choice;
  choice.solver = "cg";
  choice.preconditioner = "none";
  const Problem before(kernels::Kernel::parse("matern32", 2), 0.1, MeanKind::linear);
  const Problem problem(kernels::Kernel::parse("matern32", 2), 0.1001, MeanKind::linear);
  Matrix solution;
  gaussian_posterior(before, data, choice, 0, {}, {}, &solution);
  ASSERT_EQ(solution.cols(), 4);
  const auto cold = gaussian_posterior(problem, data, choice, 0, {}, {});
  const auto warm = gaussian_posterior(problem, data, choice, 0, {}, {}, &solution);
  EXPECT_LT(warm.solve.iterations, cold.solve.iterations);
  EXPECT_EQ(warm.solve.stop, StopReason::converged);
  const auto& a = cold.functions.front().weights.w;
  const auto& b = warm.functions.front().weights.w;
  // Both residuals are below 1e-6 |y|, and H is at least the noise.
  EXPECT_LT((a - b).norm(), 2 * 1e-6 * data.y.norm() / 0.1);
}

TEST(GaussianPosterior, TheLikelihoodOfTheSolveIsTheExactOne) {
  const Index n = 70;
  Observations data{Matrix(n, 2), Matrix(n, 1)};
  Rng rng(5, "likelihood");
  rng.fill_normal(data.x);
  rng.fill_normal(data.y);
  SystemChoice choice;
  choice.solver = "cholesky";
  for (const auto mean : {MeanKind::zero, MeanKind::constant, MeanKind::linear}) {
    Problem problem(kernels::Kernel::parse("matern32", 2), 0.1);
    problem.mean = mean;
    const auto exact = exact_evidence(problem, data, true);
    const auto value = gaussian_posterior(problem, data, choice, 0, {1e-6, true}, {}).evidence;
    ASSERT_TRUE(value.known);
    EXPECT_NEAR(value.value, exact.value, 1e-12 * n * std::abs(exact.value));
    EXPECT_EQ(value.gradient.size(), 0);
    const auto both = gaussian_posterior(problem, data, choice, 0, {1e-6, true, true}, {}).evidence;
    EXPECT_EQ(both.gradient, exact.gradient);
  }
}

}  // namespace gaussian_posterior_test
}  // namespace mercer::inference
