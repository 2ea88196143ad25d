#include "mercer/inference/log_determinant.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/small_gp.hpp"
#include "tests/testing/split_kernel_operator.hpp"

namespace mercer::inference {
namespace log_determinant_test {

double dense_log_det(const Matrix& a) {
  return 2 * Matrix(Eigen::LLT<Matrix>(a).matrixL()).diagonal().array().log().sum();
}

class LogDeterminantOf : public ::testing::TestWithParam<const char*> {};

TEST_P(LogDeterminantOf, MeanOfManyProbesIsTheDenseValue) {
  const auto gp = testing::small_gp({.num_points = 80, .kernel = "matern32"});
  const auto p = preconditioners::make(GetParam(), gp.kernel_operator, gp.noise);
  const auto estimate =
      log_determinant(gp.a, *p.preconditioner, {.probes = 1000, .tolerance = 1e-8});
  // Five standard errors: a false alarm in a million.
  EXPECT_NEAR(estimate.value, dense_log_det(gp.a.matrix()), 5 * estimate.probe_error + 1e-8);
  EXPECT_LT(estimate.solver_error, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Preconditioners, LogDeterminantOf,
                         ::testing::Values("jacobi", "rpcholesky", "vecchia", "hybrid"));

TEST(LogDeterminant, OverTwoRanksIsThatOfOne) {
  const Index n = 80;
  const auto gp = testing::small_gp({.num_points = n, .kernel = "matern32"});
  const LogDeterminantOptions options{.probes = 6, .tolerance = 1e-6};
  for (const char* name : {"jacobi", "nystrom", "rpcholesky"}) {
    const preconditioners::PreconditionerOptions wanted{
        .rank = name == std::string_view("jacobi") ? std::optional<Index>() : 15};
    const auto alone = preconditioners::make(name, gp.kernel_operator, gp.noise, wanted);
    const auto expected = log_determinant(gp.a, *alone.preconditioner, options);
    testing::on_two_ranks(n, 33, [&](const linalg::RowSpace& space) {
      const testing::SplitKernelOperator k(gp.kernel_operator, space);
      const linalg::ShiftedOperator a(k, gp.noise);
      const auto p = preconditioners::make(name, {k, gp.noise}, wanted);
      const auto estimate = log_determinant(a, *p.preconditioner, options);
      // The same probes. Rounding moves a quadrature that has converged to 1e-12 by no more than
      // that, and the step at which a residual passes its tolerance by a few per cent.
      EXPECT_NEAR(estimate.value, expected.value, 1e-8 * std::abs(expected.value)) << name;
      EXPECT_NEAR(estimate.probe_error, expected.probe_error, 1e-6 * expected.probe_error);
      EXPECT_NEAR(estimate.iterations, expected.iterations, 1 + 0.05 * expected.iterations);
      EXPECT_NEAR(estimate.matvecs, expected.matvecs, 6 + 0.05 * expected.matvecs);
    });
  }
}

TEST(LogDeterminant, ABetterPreconditionerHasLessSpread) {
  const auto gp = testing::small_gp({.num_points = 300, .kernel = "matern32"});
  const auto spread = [&](const char* name) {
    const auto p = preconditioners::make(name, gp.kernel_operator, gp.noise);
    return log_determinant(gp.a, *p.preconditioner, {.probes = 50}).probe_error;
  };
  EXPECT_LT(3 * spread("hybrid"), spread("jacobi"));
}

TEST(LogDeterminant, AnExactPreconditionerLeavesNothingToProbes) {
  const auto gp = testing::small_gp({.num_points = 40});
  preconditioners::PreconditionerOptions all;
  all.neighbours = 39;
  const auto p = preconditioners::make("vecchia", gp.kernel_operator, gp.noise, all);
  const auto estimate = log_determinant(gp.a, *p.preconditioner, {.probes = 3});
  EXPECT_NEAR(estimate.value, dense_log_det(gp.a.matrix()), 1e-6);
  EXPECT_LT(estimate.probe_error, 1e-6);
}

/// Of A = P^-1/2 H P^-1/2 with P = diag(H), and a probe.
struct DenseTruth {
  double quadrature;           // r_0' log(A) r_0 / |r_0|^2
  double smallest_eigenvalue;  // of A
};
DenseTruth dense_truth(const Matrix& h, const Vector& probe) {
  const Vector root = h.diagonal().cwiseSqrt().cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(root.asDiagonal() * h * root.asDiagonal());
  const Vector weights = eigen.eigenvectors().transpose() * root.cwiseProduct(probe);
  const double sum = (weights.array().square() * eigen.eigenvalues().array().log()).sum();
  return {sum / weights.squaredNorm(), eigen.eigenvalues()(0)};
}

// The bound holds wherever the iteration ends: far from the solution, where the residual falls by
// orders of magnitude in the last step because all eigenvalues have been found, and after that.
TEST(LanczosLog, ErrorIsNeverAboveItsBound) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto gp = testing::small_gp({.num_points = 40, .noise = 1e-3, .seed = seed});
    const auto p = preconditioners::make("jacobi", gp.kernel_operator, gp.noise);
    Matrix b(40, 1);
    Rng(seed, "probe").fill_normal(b);
    const auto truth = dense_truth(gp.a.matrix(), b);
    for (const int steps : {1, 2, 3, 5, 8, 13, 21, 34, 55}) {
      Matrix x = Matrix::Zero(40, 1), r, z(40, 1);
      krylov::SolverOptions options{.tolerance = 1e-12, .max_iterations = steps};
      options.keep_coefficients = true;
      options.residual_replacement_interval = 1000;
      krylov::SolverContext context;
      context.preconditioner = p.preconditioner.get();
      context.residual = &r;
      const auto solved = krylov::cg(gp.a, b, x, options, context);
      p.preconditioner->solve(r, z);
      const auto [value, error] =
          lanczos_log(solved.coefficients[0], r.col(0).dot(z.col(0)), truth.smallest_eigenvalue);
      // Each step rounds A by u |A|, |A| <= 40, its trace; log changes by that over an eigenvalue.
      const double rounding = 1.1e-16 * steps * 40 / truth.smallest_eigenvalue;
      EXPECT_GE(value, truth.quadrature - rounding) << "seed " << seed << ", " << steps << " steps";
      EXPECT_LE(value, truth.quadrature + error + rounding)
          << "seed " << seed << ", " << steps << " steps";
      // No useless bound either: small where nearly all of the 40 eigenvalues have been found.
      if (steps == 55) {
        EXPECT_LE(error, 1e-2) << "seed " << seed;
      }
    }
  }
}

// More iterations than points, so that eigenvalues of the Lanczos matrix come in nearly equal
// pairs: every single quadrature is exact, not only their mean.
TEST(LanczosLog, IsExactForEveryProbeAfterMoreIterationsThanPoints) {
  const auto gp = testing::small_gp({.num_points = 80, .kernel = "matern32"});
  const auto p = preconditioners::make("jacobi", gp.kernel_operator, gp.noise);
  Matrix b(80, 300), x = Matrix::Zero(80, 300);
  Rng rng(0, "log determinant");
  p.preconditioner->sample(rng, b);
  krylov::SolverOptions options{.tolerance = 1e-8};
  options.keep_coefficients = true;
  options.residual_replacement_interval = 1000;
  const auto solved = krylov::cg(gp.a, b, x, options, {.preconditioner = p.preconditioner.get()});
  ASSERT_GT(solved.iterations, 80);
  for (Index s = 0; s < b.cols(); ++s)
    EXPECT_NEAR(lanczos_log(solved.coefficients[static_cast<std::size_t>(s)], 0).value,
                dense_truth(gp.a.matrix(), b.col(s)).quadrature, 1e-10)  // u 110 x 80 / 0.011
        << "probe " << s;
}

TEST(LogDeterminant, ALooseSolveSaysSo) {
  const auto gp = testing::small_gp({.num_points = 200, .noise = 1e-4});
  const auto p = preconditioners::make("jacobi", gp.kernel_operator, gp.noise);
  const auto loose = log_determinant(gp.a, *p.preconditioner, {.probes = 10, .tolerance = 0.5});
  const auto tight = log_determinant(gp.a, *p.preconditioner,
                                     {.probes = 10, .tolerance = 1e-6, .max_iterations = 2000});
  ASSERT_EQ(tight.stop, StopReason::converged);
  EXPECT_LT(tight.solver_error, 1e-3);
  EXPECT_GT(loose.solver_error, 1);
  // A Gauss rule is an upper bound of each quadrature.
  EXPECT_GE(loose.value, tight.value);
}

}  // namespace log_determinant_test
}  // namespace mercer::inference
