// Laplace's approximation with a constant or linear mean, whose coefficients have a flat prior.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "tests/testing/laplace_problems.hpp"

namespace mercer::inference {
namespace laplace_mean_test {

constexpr MeanKind kMeans[] = {MeanKind::constant, MeanKind::linear};

Observations make_data(const std::string& likelihood, Index n, Index functions = 1) {
  const auto l = likelihoods::make(likelihood);
  functions = testing::functions_of(likelihood, functions);
  Observations out{Matrix(n, 2), Matrix(n, functions), Vector::Zero(functions)};
  Rng rng(12, "laplace mean");
  rng.fill_normal(out.x);
  Matrix f(n, functions);
  for (Index j = 0; j < functions; ++j)
    for (Index i = 0; i < n; ++i)
      f(i, j) = 0.5 + 0.7 * out.x(i, 1) + std::sin(2 * out.x(i, 0) + static_cast<double>(j));
  out.y = testing::observe_all(*l, f, rng);
  return out;
}

Problem make_problem(const std::string& likelihood, MeanKind mean,
                     const std::string& kernel = "matern52:iso") {
  return {kernels::Kernel::parse(kernel, 2), likelihoods::make(likelihood), mean};
}

NewtonOptions tight() { return {.tolerance = 1e-10, .solve_tolerance = 1e-6}; }

class LaplaceMean : public ::testing::TestWithParam<std::string> {};

TEST_P(LaplaceMean, AtTheModeTheWeightsAreOrthogonalToTheTrend) {
  const auto data = make_data(GetParam(), 80, 2);
  for (const auto mean : kMeans) {
    const auto problem = make_problem(GetParam(), mean);
    const auto mode = exact_laplace(problem, data, false, tight()).mode;
    EXPECT_EQ(mode.stop, StopReason::converged);
    const Matrix a = problem.basis(data.x);
    EXPECT_LT((a.transpose() * mode.a).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_LT((mode_slopes(problem, data, mode).gradient - mode.a).cwiseAbs().maxCoeff(), 1e-7);
    const Matrix k = problem.kernel.reference_matrix(data.x, data.x);
    EXPECT_LT((k * mode.a + a * mode.beta - mode.f).cwiseAbs().maxCoeff(), 1e-9);
  }
}

// R A and (A'R A)^-1 in dense algebra, R = (K + W^-1)^-1.
TEST_P(LaplaceMean, TheSolvesOfTheTrendAreThoseOfDenseAlgebra) {
  const auto data = make_data(GetParam(), 60, 2);
  const auto problem = make_problem(GetParam(), MeanKind::linear);
  const auto mode = exact_laplace(problem, data, false, tight()).mode;
  const Matrix a = problem.basis(data.x);
  const Index q = a.cols();
  for (Index j = 0; j < 2; ++j) {
    Matrix h = problem.kernel.reference_matrix(data.x, data.x);
    h.diagonal() += mode.w.col(j).cwiseInverse();
    const Matrix solves = h.llt().solve(a);
    const Matrix covariance = (a.transpose() * solves).inverse();
    EXPECT_LT((mode.basis_solves.middleCols(j * q, q) - solves).cwiseAbs().maxCoeff(),
              1e-8 * solves.cwiseAbs().maxCoeff());
    EXPECT_LT((mode.beta_covariance.middleCols(j * q, q) - covariance).cwiseAbs().maxCoeff(),
              1e-7 * covariance.cwiseAbs().maxCoeff());
  }
  EXPECT_LT(mode.trend_residual, 1e-7);
  EXPECT_LT(mode.trend_defect, 1e-7);
}

TEST_P(LaplaceMean, TheGradientIsThatOfTheEvidence) {
  // Central differences of a value exact to 1e-11 with steps of 1e-4: errors of
  // 1e-7 and 1e-8 |third derivative|.
  for (const auto mean : kMeans) {
    const auto data = make_data(GetParam(), 50, 2);
    auto problem = make_problem(GetParam(), mean, "matern32");
    const auto evidence = exact_laplace(problem, data, true, tight());
    const Vector theta = problem.log_parameters();
    ASSERT_EQ(evidence.gradient.size(), theta.size());
    for (Index p = 0; p < theta.size(); ++p) {
      const auto value = [&](double step) {
        Vector moved = theta;
        moved(p) += step;
        problem.set_log_parameters(moved);
        return exact_laplace(problem, data, false, tight()).value;
      };
      const double h = 1e-4;
      const double slope = (value(h) - value(-h)) / (2 * h);
      EXPECT_NEAR(evidence.gradient(p), slope, 1e-5 * (1 + std::abs(slope)))
          << to_string(mean) << " " << problem.parameter_names()[static_cast<std::size_t>(p)];
    }
  }
}

TEST_P(LaplaceMean, SolvesFindTheModeOfTheFactorisation) {
  const auto data = make_data(GetParam(), 100, 2);
  const auto problem = make_problem(GetParam(), MeanKind::linear);
  const auto exact = exact_laplace(problem, data, false, tight()).mode;
  SystemChoice choice;
  choice.solver = "cg";
  choice.preconditioner = "auto";
  IterativeLaplaceSystem system(problem.kernel, data.x, choice);
  const auto mode = find_mode(problem, data, system, {}, {.tolerance = 1e-8});
  EXPECT_EQ(mode.stop, StopReason::converged);
  EXPECT_LT((mode.f - exact.f).cwiseAbs().maxCoeff(), 1e-7);
  EXPECT_LT((mode.beta - exact.beta).cwiseAbs().maxCoeff(), 1e-7);
  EXPECT_LT((mode.basis_solves - exact.basis_solves).cwiseAbs().maxCoeff(), 1e-6);
}

TEST_P(LaplaceMean, AWarmStartLeadsToTheSameMode) {
  const auto data = make_data(GetParam(), 60);
  auto problem = make_problem(GetParam(), MeanKind::linear);
  ExactLaplace exact(data, tight());
  exact.evaluate(problem, false);
  problem.kernel.set_all_lengthscales(1.3);
  const auto warm = exact.evaluate(problem, true);
  const auto cold = exact_laplace(problem, data, true, tight());
  EXPECT_EQ(warm.mode.stop, StopReason::converged);
  // Without log-concavity there may be several modes; another one is as good an end.
  const double apart = (warm.mode.f - cold.mode.f).cwiseAbs().maxCoeff();
  if (!problem.likelihood->log_concave() && apart > 1e-3) return;
  EXPECT_NEAR(warm.value, cold.value, 1e-9 * std::abs(cold.value));
  EXPECT_LT((warm.mode.beta - cold.mode.beta).cwiseAbs().maxCoeff(), 1e-7);
  EXPECT_LT((warm.gradient - cold.gradient).cwiseAbs().maxCoeff(), 1e-6);
}

class LaplaceWeights : public ::testing::TestWithParam<std::string> {};

// A row of weight c is c rows: evidence, gradient and functions are those of
// repeated data.
TEST_P(LaplaceWeights, AreRepeatedRows) {
  auto data = make_data(GetParam(), 30, 2);
  Observations repeated{Matrix(60, 2), Matrix(60, 2), data.offset};
  data.noise.weight.resize(30);
  Index at = 0;
  for (Index i = 0; i < 30; ++i) {
    data.noise.weight(i) = 1 + static_cast<double>(i % 3);
    for (Index copy = 0; copy < 1 + i % 3; ++copy, ++at) {
      repeated.x.row(at) = data.x.row(i);
      repeated.y.row(at) = data.y.row(i);
    }
  }
  ASSERT_EQ(at, 60);
  for (const auto mean : testing::means_of(GetParam())) {
    const auto problem = make_problem(GetParam(), mean);
    const auto weighted = exact_laplace(problem, data, true, tight());
    const auto whole = exact_laplace(problem, repeated, true, tight());
    EXPECT_NEAR(weighted.value, whole.value, 1e-8 * std::abs(whole.value));
    EXPECT_LT((weighted.gradient - whole.gradient).cwiseAbs().maxCoeff(),
              1e-6 * (1 + whole.gradient.cwiseAbs().maxCoeff()));
    EXPECT_LT((weighted.mode.beta - whole.mode.beta).norm(), 1e-7);
    EXPECT_LT((weighted.mode.f.row(29) - whole.mode.f.row(59)).norm(), 1e-7);
  }
}

// A trend that all coupled functions share changes nothing they say: it is refused.
TEST_P(LaplaceWeights, MeansThatAreNotDeterminedAreRefused) {
  const auto data = make_data(GetParam(), 30, 2);
  const auto allowed = testing::means_of(GetParam());
  for (const auto mean : kMeans)
    if (std::find(allowed.begin(), allowed.end(), mean) == allowed.end()) {
      EXPECT_THROW(exact_laplace(make_problem(GetParam(), mean), data, false), InvalidArgument);
    } else {
      EXPECT_NO_THROW(exact_laplace(make_problem(GetParam(), mean), data, false));
    }
}

std::vector<std::string> names_with_a_mean() {
  auto names = testing::likelihood_names();
  std::erase_if(names, [](const auto& name) { return testing::means_of(name).size() == 1; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, LaplaceMean, ::testing::ValuesIn(names_with_a_mean()),
                         testing::test_name);
INSTANTIATE_TEST_SUITE_P(Registry, LaplaceWeights, ::testing::ValuesIn(testing::likelihood_names()),
                         testing::test_name);

// With Gaussian noise it is universal kriging, which another file computes in
// another way.
TEST(LaplaceMeanOfGaussianNoise, IsUniversalKriging) {
  const auto data = make_data("gaussian", 70);
  for (const auto mean : kMeans) {
    const auto problem = make_problem("gaussian", mean);
    const Observations rows{data.x, data.y.col(0)};
    const auto exact = exact_evidence(problem, rows, true);
    const auto laplace = exact_laplace(problem, data, true, tight());
    EXPECT_NEAR(laplace.value, exact.value, 1e-9 * std::abs(exact.value));
    EXPECT_LT((laplace.gradient - exact.gradient).cwiseAbs().maxCoeff(),
              1e-7 * (1 + exact.gradient.cwiseAbs().maxCoeff()));
    Matrix h = problem.kernel.reference_matrix(data.x, data.x);
    h.diagonal().array() += problem.noise();
    const Matrix a = problem.basis(data.x);
    Matrix b(data.size(), 1 + a.cols());
    b << data.y, a;
    const auto weights = combine_solves(h.llt().solve(b), a);
    EXPECT_LT((laplace.mode.a.col(0) - weights.w).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_LT((laplace.mode.beta.col(0) - weights.beta).cwiseAbs().maxCoeff(), 1e-7);
  }
}

TEST(LaplaceMeanBySolves, TheMeanOfManyEstimatesIsTheExactGradient) {
  for (const std::string likelihood : {"bernoulli-logit", "negative-binomial"}) {
    SCOPED_TRACE(likelihood);
    const auto data = make_data(likelihood, 60, 2);
    const auto problem = make_problem(likelihood, MeanKind::linear);
    testing::expect_unbiased(problem, data, exact_laplace(problem, data, true, tight()).gradient);
  }
}

}  // namespace laplace_mean_test
}  // namespace mercer::inference
