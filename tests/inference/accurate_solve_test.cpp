// Solves that go on until means are certified, and what they say of their own error. The exact
// means come from Eigen's Cholesky factorisation.
#include "mercer/inference/exact/accurate_solve.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/eigen.hpp>
#include <cmath>
#include <string>

#include "mercer/core/rng.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/error_estimate.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"
#include "mercer/inference/solvers.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace accurate_solve_test {

struct Case {
  std::string solver;
  double noise;
  MeanKind mean;
  bool row_noise;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& c = info.param;
  return c.solver + "_noise1e" +
         std::to_string(-static_cast<int>(std::lround(std::log10(c.noise)))) + "_" +
         std::string(to_string(c.mean)) + (c.row_noise ? "_rows" : "");
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& solver : solvers()) {
    if (solver.unbiased) continue;  // right on average: no single solution is accurate
    for (const double noise : {1e-2, 1e-4, 1e-6})
      for (const auto mean : {MeanKind::zero, MeanKind::linear})
        for (const bool row_noise : {false, true}) {
          if (row_noise && !solver.takes_row_noise) continue;
          out.push_back({std::string(solver.name), noise, mean, row_noise});
        }
  }
  return out;
}

class AccurateSolve : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr Index kRows = 160, kInputs = 2;

  AccurateSolve()
      : problem(kernels::Kernel::parse("matern32", kInputs), GetParam().noise, GetParam().mean) {
    Rng rng(11, "accurate");
    data.x.resize(kRows, kInputs);
    data.y.resize(kRows, 1);
    rng.fill_normal(data.x);
    const double sd = std::sqrt(GetParam().noise);
    for (Index i = 0; i < kRows; ++i)
      data.y(i, 0) = std::sin(2 * data.x(i, 0)) + data.x(i, 1) + 3 + sd * rng.normal();
    if (GetParam().row_noise) {
      data.noise.known.resize(kRows);
      for (Index i = 0; i < kRows; ++i)
        data.noise.known(i) = GetParam().noise * std::exp(3 * rng.uniform());
    }
    choice.solver = GetParam().solver;
    choice.max_iterations = 20000;
    // Restarted GMRES stagnates without one.
    if (solver(choice.solver).takes_preconditioner && !choice.direct()) {
      choice.preconditioner = "vecchia";
      choice.preconditioning.neighbours = 20;
    }
  }

  // Means at `at` from Eigen.
  Vector exact_means(const Matrix& at) const {
    Matrix h(kRows, kRows), cross(at.rows(), kRows);
    operators::dense_matrix(problem.kernel, data.x, h);
    operators::cross_matrix(problem.kernel, at, data.x, cross);
    h.diagonal() += data.noise.at(problem.noise()).vector(kRows);
    const Eigen::LLT<Matrix> factor(h);
    const Matrix a = problem.basis(data.x);
    if (a.cols() == 0) return cross * factor.solve(data.y.col(0));
    const Matrix solves = factor.solve(a);
    const Vector beta = (a.transpose() * solves).ldlt().solve(solves.transpose() * data.y.col(0));
    return cross * factor.solve(data.y.col(0) - a * beta) + problem.basis(at) * beta;
  }
  Vector means(const Posterior& posterior, const Matrix& at) const {
    const auto& weights = posterior.functions[0].weights;
    Matrix cross(at.rows(), kRows);
    operators::cross_matrix(problem.kernel, at, data.x, cross);
    Vector out = cross * weights.w;
    if (weights.beta.size() > 0) out += problem.basis(at) * weights.beta;
    return out;
  }
  static Matrix new_points() {
    Matrix at(200, kInputs);
    Rng(12, "new").fill_normal(at);
    return at;
  }

  Problem problem;
  Observations data;
  SystemChoice choice;
};

TEST_P(AccurateSolve, ReachesTheAccuracyAndItsBoundHolds) {
  // A loose tolerance: it is the accuracy that decides.
  const auto posterior =
      gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-2, .accuracy = 0.01}, {});
  const auto& c = posterior.certificate;
  EXPECT_TRUE(c.accuracy_missed.empty()) << c.accuracy_missed;
  EXPECT_LE(c.mean_error_bound, 0.01 * target_sd(data));
  EXPECT_EQ(posterior.solve.stop, StopReason::converged);
  const Matrix at = new_points();
  const double error = (means(posterior, at) - exact_means(at)).cwiseAbs().maxCoeff();
  const ErrorBound bound(problem.kernel, posterior.functions[0].weights,
                         {c.residual(0), c.trend_defect}, data.x);
  EXPECT_LE(error, bound(problem.kernel.diagonal(at), problem.basis(at)).maxCoeff());
  ASSERT_TRUE(c.mean_error_estimate);
  EXPECT_LE(*c.mean_error_estimate, c.mean_error_bound);
  // New points here lie outside the training points as well, so that the estimate is tried a bit
  // beyond its purpose; below 1e-11 it is rounding that is estimated.
  EXPECT_GE(*c.mean_error_estimate, 0.1 * error - 1e-11);
  EXPECT_LE(*c.mean_error_estimate, 100 * error + 1e-11);
}

TEST_P(AccurateSolve, WithoutAnAccuracyTheToleranceIsEnough) {
  const auto loose = gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-2}, {});
  const auto tight =
      gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-2, .accuracy = 1e-4}, {});
  EXPECT_TRUE(loose.certificate.accuracy_missed.empty());
  EXPECT_LE(loose.certificate.relative_residual, 1e-2);
  if (choice.direct()) return;
  EXPECT_LT(loose.solve.iterations, tight.solve.iterations);
}

INSTANTIATE_TEST_SUITE_P(Solvers, AccurateSolve, ::testing::ValuesIn(cases()), name_of);

Observations sine(Index n) {
  Observations data{Matrix(n, 1), Matrix(n, 1)};
  Rng rng(5, "sine");
  rng.fill_uniform(data.x);
  for (Index i = 0; i < n; ++i) data.y(i, 0) = std::sin(6 * data.x(i, 0)) + 1e-3 * rng.normal();
  return data;
}

TEST(AccurateSolveLimits, SaysThatTheIterationsDidNotSuffice) {
  const auto data = sine(200);
  const Problem problem(kernels::Kernel::parse("matern32", 1), 1e-6);
  SystemChoice choice;
  choice.solver = "cg";
  const auto enough =
      gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-2}, {}).solve.iterations;
  choice.max_iterations = 2 * enough;  // enough for the tolerance, but residuals go up and down
  const auto posterior =
      gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-2, .accuracy = 1e-6}, {});
  EXPECT_EQ(posterior.solve.stop == StopReason::converged,
            posterior.certificate.relative_residual <= 1e-2);
  EXPECT_NE(posterior.certificate.accuracy_missed.find("max_iterations"), std::string::npos);
  EXPECT_GT(posterior.certificate.mean_error_bound, 1e-6 * target_sd(data));
}

TEST(AccurateSolveLimits, SaysThatRoundingAllowsNoBetter) {
  const auto data = sine(200);
  const Problem problem(kernels::Kernel::parse("rbf", 1), 1e-10);
  for (const char* solver : {"cholesky", "cg"}) {
    SystemChoice choice;
    choice.solver = solver;
    choice.max_iterations = 100000;
    const auto posterior =
        gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-3, .accuracy = 1e-14}, {});
    EXPECT_FALSE(posterior.certificate.accuracy_missed.empty()) << solver;
    EXPECT_EQ(posterior.solve.stop, StopReason::converged) << solver;
  }
}

// A bound of |D^-1/2 r| knows nothing of K; |L^-1 r| does, and is the exact r'H^-1 r.
TEST(AccurateSolveLimits, TheFactorGivesTheEnergyOfTheResidual) {
  const auto data = sine(80);
  const Problem problem(kernels::Kernel::parse("matern32", 1), 1e-4);
  SystemChoice choice;
  choice.solver = "cholesky";
  auto solved = solve_system(problem, data, Matrix(80, 0), choice, 0, {});
  Matrix h(80, 80);
  operators::dense_matrix(problem.kernel, data.x, h);
  h.diagonal().array() += 1e-4;
  const Vector r = true_residual(problem.kernel, 1e-4, data.x, data.y, solved.solution).col(0);
  const double energy = std::sqrt(r.dot(Eigen::LLT<Matrix>(h).solve(r)));
  EXPECT_GE(solved.whitening_error * solved.whitened_residual.col(0).norm(), energy * (1 - 1e-6));
  EXPECT_LE(solved.whitened_residual.col(0).norm(), energy * (1 + 1e-6));
  EXPECT_LE(solved.energy, r.norm() / 1e-2);
}

// Rows too far apart to know of each other: H is diagonal, and the first step is exact.
TEST(AccurateSolveLimits, AnExactSolutionHasAnEstimateOfRounding) {
  Observations data{Matrix(5, 1), Matrix(5, 1)};
  for (Index i = 0; i < 5; ++i) {
    data.x(i, 0) = 1000.0 * static_cast<double>(i);
    data.y(i, 0) = static_cast<double>(i + 1);
  }
  const Problem problem(kernels::Kernel::parse("rbf", 1), 1.0);
  for (const auto& solver : solvers()) {
    SystemChoice choice;
    choice.solver = solver.name;
    const auto c =
        gaussian_posterior(problem, data, choice, 0, {.tolerance = 1e-6, .accuracy = 0.01}, {})
            .certificate;
    ASSERT_TRUE(c.mean_error_estimate) << solver.name;
    EXPECT_TRUE(std::isfinite(*c.mean_error_estimate)) << solver.name;
    EXPECT_GT(c.mean_error_bound, 0) << solver.name;
    EXPECT_LE(*c.mean_error_estimate, c.mean_error_bound) << solver.name;
  }
}

// Pairs of nearly equal rows at low noise: the rounding of the residual itself counts. The exact
// mean comes from a hundred digits.
TEST(AccurateSolveLimits, BoundsHoldForPairsOfNearlyEqualRows) {
  using Real = boost::multiprecision::cpp_bin_float_100;
  using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const auto kernel = [](double a, double b) -> Real {
    return exp(-(Real(a) - Real(b)) * (Real(a) - Real(b)) / 2);
  };
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed, "pairs");
    const double noise = std::pow(10.0, -7 - 6 * rng.uniform());
    Observations data{Matrix(4, 1), Matrix(4, 1)};
    rng.fill_normal(data.x);
    rng.fill_normal(data.y);
    data.x(1, 0) = data.x(0, 0) + std::sqrt(noise) * (0.5 + rng.uniform());
    data.x(3, 0) = data.x(2, 0) + std::sqrt(noise) * (0.5 + rng.uniform());
    const Problem problem(kernels::Kernel::parse("rbf", 1), noise);
    SystemChoice choice;
    const auto posterior = gaussian_posterior(problem, data, choice, 0, {.accuracy = 0.01}, {});
    RealMatrix h(4, 4);
    for (Index i = 0; i < 4; ++i)
      for (Index j = 0; j < 4; ++j)
        h(i, j) = kernel(data.x(i, 0), data.x(j, 0)) + (i == j ? Real(noise) : Real(0));
    const RealMatrix exact = h.llt().solve(data.y.cast<Real>());
    double worst = 0;
    for (double at = -3; at <= 3; at += 0.1) {
      Real difference = 0;
      for (Index j = 0; j < 4; ++j)
        difference +=
            kernel(at, data.x(j, 0)) * (exact(j, 0) - Real(posterior.functions[0].weights.w(j)));
      worst = std::max(worst, std::abs(static_cast<double>(difference)));
    }
    EXPECT_LE(worst, posterior.certificate.mean_error_bound) << "noise " << noise;
  }
}

TEST(ProbePoints, LieBetweenTrainingPointsThatDiffer) {
  Matrix x(6, 1);
  x << 0, 0, 1, 1, 3, 3;
  const auto kernel = kernels::Kernel::parse("rbf", 1);
  const Matrix probes = probe_points(kernel, x, 0);
  ASSERT_EQ(probes.rows(), 6);
  // Half way from 0 or 1 to the other, from 3 to 1; or as far to the other side.
  for (Index i = 0; i < 6; ++i) {
    const double at = probes(i, 0);
    if (i % 2 == 0)
      EXPECT_TRUE(at == 0.5 || at == 2.0) << at;
    else
      EXPECT_TRUE(at == -0.5 || at == 1.5 || at == 4.0) << at;
  }
  const Matrix same = probe_points(kernel, Matrix::Ones(4, 1), 0);
  EXPECT_EQ(same, Matrix::Ones(4, 1));
}

}  // namespace accurate_solve_test
}  // namespace mercer::inference
