#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/inference/laplace/laplace_gradient.hpp"
#include "mercer/inference/log_determinant.hpp"
#include "tests/testing/laplace_problems.hpp"

namespace mercer::inference {
namespace laplace_test {

using testing::likelihood_names;

Observations make_data(const std::string& likelihood, Index n, Index functions = 1) {
  const auto l = likelihoods::make(likelihood);
  functions = testing::functions_of(likelihood, functions);
  Observations out{Matrix(n, 2), Matrix(n, functions), Vector::Zero(functions)};
  Rng rng(11, "laplace data");
  rng.fill_normal(out.x);
  Matrix f(n, functions);
  for (Index j = 0; j < functions; ++j)
    for (Index i = 0; i < n; ++i)
      f(i, j) = std::sin(2 * out.x(i, 0) + static_cast<double>(j)) + 0.4 * out.x(i, 1);
  out.y = testing::observe_all(*l, f, rng);
  for (Index j = 0; j < functions; ++j) out.offset(j) = l->offset(out.y.col(j));
  return out;
}

Problem make_problem(const std::string& likelihood, const std::string& kernel = "matern52") {
  Problem problem(kernels::Kernel::parse(kernel, 2), likelihoods::make(likelihood));
  problem.kernel.set_all_variances(2.0);
  return problem;
}

SystemChoice iterative(const std::string& preconditioner) {
  SystemChoice choice;
  choice.solver = "cg";
  choice.preconditioner = preconditioner;
  return choice;
}

// Where the curvature of a likelihood is negative (student-t) steps take it for zero, and converge
// linearly: ten digits may need more than the usual hundred steps.
NewtonOptions tight() { return {.tolerance = 1e-10, .solve_tolerance = 1e-6, .max_steps = 1000}; }

// Of Gaussian noise Laplace's approximation is exact: value and gradient are those of regression.
TEST(Laplace, IsExactForGaussianNoise) {
  const auto data = make_data("gaussian", 60);
  const Problem problem(kernels::Kernel::parse("matern32", 2), 0.2);
  const Observations rows{data.x, data.y.col(0).array() - data.offset(0)};
  const auto laplace = exact_laplace(problem, data, true, tight());
  const auto exact = exact_evidence(problem, rows, true);
  EXPECT_NEAR(laplace.value, exact.value, 1e-9 * std::abs(exact.value));
  EXPECT_LT((laplace.gradient - exact.gradient).cwiseAbs().maxCoeff(),
            1e-7 * exact.gradient.cwiseAbs().maxCoeff());
}

class LaplaceLaws : public ::testing::TestWithParam<std::string> {};

TEST_P(LaplaceLaws, AtTheModeWeightsAreTheGradientOfTheLikelihood) {
  const auto data = make_data(GetParam(), 80, 2);
  const auto problem = make_problem(GetParam());
  const auto evidence = exact_laplace(problem, data, false, tight());
  EXPECT_EQ(evidence.mode.stop, StopReason::converged);
  const auto slopes = mode_slopes(problem, data, evidence.mode);
  EXPECT_LT((slopes.gradient - evidence.mode.a).cwiseAbs().maxCoeff(), 1e-7);
  // f = K a + offset, by the reference kernel.
  const Matrix k = problem.kernel.reference_matrix(data.x, data.x);
  const Matrix f = (k * evidence.mode.a).rowwise() + data.offset.transpose();
  EXPECT_LT((f - evidence.mode.f).cwiseAbs().maxCoeff(), 1e-9);
}

TEST_P(LaplaceLaws, TheGradientIsThatOfTheEvidence) {
  // Central differences of a value exact to 1e-11 with steps of 1e-4: errors of 1e-7 and
  // 1e-8 |third derivative|.
  for (const auto* kernel : {"rbf:iso", "matern32 + linear:iso"}) {
    const auto data = make_data(GetParam(), 50, 2);
    auto problem = make_problem(GetParam(), kernel);
    const auto evidence = exact_laplace(problem, data, true, tight());
    const Vector theta = problem.log_parameters();
    ASSERT_EQ(evidence.gradient.size(), theta.size());
    for (Index p = 0; p < theta.size(); ++p) {
      const auto value = [&](double step) {
        Vector moved = theta;
        moved(p) += step;
        problem.set_log_parameters(moved);
        return exact_laplace(problem, data, false, tight(), evidence.mode).value;
      };
      const double h = 1e-4;
      const double slope = (value(h) - value(-h)) / (2 * h);
      EXPECT_NEAR(evidence.gradient(p), slope, 1e-5 * (1 + std::abs(slope)))
          << kernel << " " << problem.parameter_names()[static_cast<std::size_t>(p)];
    }
  }
}

TEST_P(LaplaceLaws, SolvesFindTheModeOfTheFactorisation) {
  const auto data = make_data(GetParam(), 120, 3);
  const auto problem = make_problem(GetParam());
  const auto exact = exact_laplace(problem, data, false, tight());
  for (const auto* preconditioner : {"auto", "none", "nystrom", "vecchia"}) {
    IterativeLaplaceSystem system(problem.kernel, data.x, iterative(preconditioner));
    if (testing::is_coupled(GetParam()) && preconditioner != std::string("auto") &&
        preconditioner != std::string("none")) {
      // There is no W^-1 to build them for.
      EXPECT_THROW(find_mode(problem, data, system, {}, {}), InvalidArgument);
      continue;
    }
    const auto mode = find_mode(problem, data, system, {}, {.tolerance = 1e-8});
    EXPECT_EQ(mode.stop, StopReason::converged) << preconditioner;
    EXPECT_LT((mode.f - exact.mode.f).cwiseAbs().maxCoeff(), 2e-8) << preconditioner;
    EXPECT_GT(mode.matvecs, 0);
  }
}

TEST_P(LaplaceLaws, TheMeanOfManyEstimatesIsTheExactGradient) {
  const auto data = make_data(GetParam(), 60, 2);
  const auto problem = make_problem(GetParam(), "rbf");
  testing::expect_unbiased(problem, data, exact_laplace(problem, data, true, tight()).gradient);
}

INSTANTIATE_TEST_SUITE_P(Registry, LaplaceLaws, ::testing::ValuesIn(likelihood_names()),
                         testing::test_name);

TEST(Laplace, TheBoundHoldsAtEveryToleranceAtAndBetweenThePoints) {
  const auto data = make_data("bernoulli-logit", 100);
  const auto problem = make_problem("bernoulli-logit");
  const auto exact = exact_laplace(problem, data, false, tight());
  Matrix elsewhere(50, 2);
  Rng(3, "elsewhere").fill_normal(elsewhere);
  const Matrix cross = problem.kernel.reference_matrix(elsewhere, data.x);
  const Vector prior = problem.kernel.diagonal(elsewhere);
  for (const double tolerance : {3.0, 0.3, 1e-2, 1e-4}) {
    IterativeLaplaceSystem system(problem.kernel, data.x, iterative("none"));
    const NewtonOptions options{.tolerance = tolerance, .solve_tolerance = 0.3};
    const auto mode = find_mode(problem, data, system, {}, options);
    const Vector error = (cross * (mode.a - exact.mode.a)).col(0).cwiseAbs();
    for (Index i = 0; i < error.size(); ++i)
      EXPECT_LE(error(i), std::sqrt(prior(i)) * mode.residual(0) * (1 + 1e-9) + 1e-10);
  }
}

TEST(Laplace, SeparableClassesAndAHugeVarianceStayFinite) {
  auto data = make_data("bernoulli-logit", 60);
  for (Index i = 0; i < 60; ++i) data.y(i, 0) = data.x(i, 0) > 0 ? 1 : 0;
  for (const auto* name : {"bernoulli-logit", "bernoulli-probit"}) {
    auto problem = make_problem(name, "rbf:iso");
    problem.kernel.set_all_variances(1e6);
    problem.kernel.set_all_lengthscales(5);
    const auto evidence = exact_laplace(problem, data, true);
    EXPECT_TRUE(std::isfinite(evidence.value));
    EXPECT_TRUE(evidence.gradient.allFinite());
    EXPECT_TRUE(evidence.mode.f.allFinite());
  }
}

// With a kernel of variance 1e4 and a scale of 0.03, K a is only known to 1e-16 |K||a|, which keeps
// r'K r above the tolerance at the mode itself. The decrement, recomputed here in long double from
// the weights alone, says that the mode was found all the same.
TEST(Laplace, RoundingOfALargeKernelIsNoFailure) {
  using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
  const auto data = make_data("student-t", 60);
  auto problem = make_problem("student-t");
  problem.kernel.set_all_variances(1e4);
  problem.likelihood->set_log_parameters(Vector::Constant(1, std::log(0.03)));
  const auto mode = exact_laplace(problem, data, false, {.max_steps = 1000}).mode;
  ASSERT_EQ(mode.stop, StopReason::converged);
  ASSERT_GT(1e2 * mode.residual(0), 1e-6) << "the residual alone would have done";
  ASSERT_TRUE(mode.decrement.has_value());
  EXPECT_LE(*mode.decrement, 1e-6);

  const LongMatrix k = problem.kernel.reference_matrix(data.x, data.x).cast<long double>();
  const LongMatrix f = k * mode.a.cast<long double>();
  LongMatrix inner = k.inverse(), r(60, 1);
  for (Index i = 0; i < 60; ++i) {
    const auto p = problem.likelihood->log_density(data.y(i, 0),
                                                   static_cast<double>(f(i, 0)) + data.offset(0));
    r(i, 0) = p.first - mode.a(i, 0);
    inner(i, i) += std::max(-p.second, 0.0);
  }
  const LongMatrix step = inner.ldlt().solve(r);
  EXPECT_LT(std::sqrt(static_cast<double>(r.col(0).dot(step.col(0)))), 1e-6);
}

TEST(Laplace, SolvesAreTightenedWhereDirectionsCancel) {
  // S K S of order 1e3 and more: a relative 1e-3 in its solves is more than the step itself.
  for (const auto* name : {"bernoulli-logit", "poisson"}) {
    const auto data = make_data(name, 120);
    auto problem = make_problem(name, "rbf:iso");
    problem.kernel.set_all_variances(1e3);
    const auto exact = exact_laplace(problem, data, false);
    for (const auto* preconditioner : {"auto", "none"}) {
      IterativeLaplaceSystem system(problem.kernel, data.x, iterative(preconditioner));
      const auto mode = find_mode(problem, data, system, {}, {});
      EXPECT_EQ(mode.stop, StopReason::converged) << name << " " << preconditioner;
      EXPECT_LT((mode.f - exact.mode.f).cwiseAbs().maxCoeff(), 1e-5) << name;
    }
  }
}

TEST(Laplace, AnEvidenceWithoutAModeIsNone) {
  auto data = make_data("poisson", 60);
  for (Index i = 0; i < 60; ++i) data.y(i, 0) = std::floor(std::exp(0.4 * static_cast<double>(i)));
  auto problem = make_problem("poisson", "rbf:iso");
  problem.kernel.set_all_variances(1e8);
  try {
    // log p <= 0 and log|B| >= 0.
    EXPECT_LE(exact_laplace(problem, data, false, {.max_steps = 3}).value, 0);
  } catch (const NotPositiveDefinite& error) {
    EXPECT_NE(std::string(error.what()).find("mode"), std::string::npos);
  }
}

TEST(Laplace, AWarmStartEndsAtTheSameMode) {
  const auto data = make_data("poisson", 80);
  auto problem = make_problem("poisson");
  const auto first = exact_laplace(problem, data, false, tight());
  // So near that Newton's method converges quadratically from there; from 1.5 it may take a step
  // more than from zero.
  problem.kernel.set_all_lengthscales(1.02);
  const auto cold = exact_laplace(problem, data, false, tight());
  const auto warm = exact_laplace(problem, data, false, tight(), first.mode);
  EXPECT_LT((cold.mode.f - warm.mode.f).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_LT(warm.mode.steps, cold.mode.steps);
  EXPECT_NEAR(cold.value, warm.value, 1e-8);
}

// The f of one kernel's mode under another kernel, far from it in its a.
TEST(Laplace, NewtonsMethodMayBeginAtTheFunctionOfAnotherKernel) {
  const auto data = make_data("bernoulli-logit", 200);
  auto problem = make_problem("bernoulli-logit", "rbf:iso");
  problem.kernel.set_all_variances(100.0);
  // f = K a is rounded by u |K| |a|, up to 1e-16 x 2e4 x 14, and the residual of the mode with it:
  // 1e-8 is as far as its bound can come down here.
  const NewtonOptions options{.tolerance = 1e-7, .solve_tolerance = 1e-6};
  const auto first = exact_laplace(problem, data, false, options);
  problem.kernel.set_all_lengthscales(1.6);
  const auto steps_from = [&](LaplaceMode start) {
    DenseLaplaceSystem system(problem.kernel, data.x);
    const auto mode = find_mode(problem, data, system, std::move(start), options);
    EXPECT_EQ(mode.stop, StopReason::converged);
    // Each entry of both is within the tolerance of the exact mode.
    EXPECT_LT((mode.f - exact_laplace(problem, data, false, options).mode.f).cwiseAbs().maxCoeff(),
              2 * options.tolerance);
    return mode.steps;
  };
  LaplaceMode only_a;
  only_a.a = first.mode.a;
  EXPECT_LE(steps_from(first.mode), steps_from({}));
  EXPECT_LE(steps_from(first.mode), steps_from(only_a));
}

TEST_P(LaplaceLaws, EvidencesInARowAreThoseAlone) {
  const auto data = make_data(GetParam(), 90);
  for (const auto mean : testing::means_of(GetParam())) {
    auto problem = make_problem(GetParam());
    problem.mean = mean;
    ExactLaplace row(data, tight()), resumed(data, tight());
    Problem before = problem;
    LaplaceMode last;
    for (const double length : {1.0, 1.2, 1.25, 0.8}) {
      problem.kernel.set_all_lengthscales(length);
      const auto alone = exact_laplace(problem, data, true, tight());
      if (last.a.size() > 0) resumed.resume(before, last.a, last.beta);
      const auto here = row.evaluate(problem, true);
      EXPECT_EQ(here.mode.stop, StopReason::converged);
      // Without log-concavity there may be several modes; another one is as good an end.
      const double apart = (here.mode.f - alone.mode.f).cwiseAbs().maxCoeff();
      if (problem.likelihood->log_concave() || apart < 1e-3) {
        EXPECT_NEAR(here.value, alone.value, 1e-8);
        EXPECT_LT((here.gradient - alone.gradient).norm(), 1e-6 * (1 + alone.gradient.norm()));
      }
      // Resumed from what was last, it is the same to the last bit.
      const auto again = resumed.evaluate(problem, true);
      EXPECT_EQ(again.value, here.value);
      EXPECT_EQ(again.gradient, here.gradient);
      before = problem;
      last = here.mode;
    }
  }
}

TEST(Laplace, AFactorOfBeforeSavesFactorisations) {
  const auto data = make_data("bernoulli-logit", 400);
  auto problem = make_problem("bernoulli-logit");
  ExactLaplace row(data);
  row.evaluate(problem, false);
  const int cold = row.factorisations();
  problem.kernel.set_all_lengthscales(1.01);
  const auto mode = row.evaluate(problem, false).mode;
  EXPECT_GT(mode.iterations, 0);
  EXPECT_LE(row.factorisations() - cold, 2);
}

TEST(Laplace, AfterAFailureTheLastGoodEvidenceIsWhereItGoesOn) {
  const auto data = make_data("poisson", 60);
  auto problem = make_problem("poisson");
  ExactLaplace row(data, tight()), untroubled(data, tight());
  row.evaluate(problem, true);
  untroubled.evaluate(problem, true);
  auto impossible = problem;
  impossible.kernel.set_all_variances(1e300);
  EXPECT_ANY_THROW(row.evaluate(impossible, true));
  problem.kernel.set_all_lengthscales(1.1);
  const auto here = row.evaluate(problem, true), expected = untroubled.evaluate(problem, true);
  EXPECT_EQ(here.value, expected.value);
  EXPECT_EQ(here.gradient, expected.gradient);
}

TEST(DenseLaplaceSystem, SolvesWithAnOldFactorReachTheToleranceAsked) {
  const auto data = make_data("bernoulli-logit", 300, 2);
  const auto problem = make_problem("bernoulli-logit");
  DenseLaplaceSystem system(problem.kernel, data.x);
  Rng rng(3, "curvature");
  Matrix w = Matrix::Constant(300, 2, 0.2), b(600, 3), x(600, 3), direct(600, 3);
  rng.fill_normal(b);
  system.set_curvature(w);
  system.solve(b, x, 1e-6);
  EXPECT_EQ(system.factorisations(), 2);
  for (Index i = 0; i < 300; ++i) w(i, i % 2) *= 0.9 + 0.2 * rng.uniform();
  system.set_curvature(w);
  x.setZero();
  const auto report = system.solve(b, x, 1e-4);
  EXPECT_EQ(system.factorisations(), 2);
  EXPECT_GT(report.iterations, 0);
  system.factor();
  EXPECT_EQ(system.factorisations(), 4);
  system.solve(b, direct, 1e-4);
  EXPECT_LT((x - direct).norm(), 1e-3 * direct.norm());
  EXPECT_GT((x - direct).norm(), 0);
}

TEST(Laplace, AnObserverStopsNewtonsMethod) {
  const auto data = make_data("bernoulli-logit", 60);
  const auto problem = make_problem("bernoulli-logit");
  DenseLaplaceSystem system(problem.kernel, data.x);
  const auto mode =
      find_mode(problem, data, system, {}, tight(), [](const Iteration&) { return Action::stop; });
  EXPECT_EQ(mode.stop, StopReason::interrupted);
}

TEST(Laplace, LanczosQuadratureKnowsTheLogDeterminantOfB) {
  const auto data = make_data("bernoulli-logit", 150, 2);
  const auto problem = make_problem("bernoulli-logit");
  DenseLaplaceSystem dense(problem.kernel, data.x);
  const auto mode = find_mode(problem, data, dense, {}, tight());
  IterativeLaplaceSystem system(problem.kernel, data.x, iterative("auto"));
  system.set_curvature(mode.w);
  const auto estimate =
      log_determinant(system.b(), *system.preconditioner(), {.probes = 30, .tolerance = 1e-6});
  // |t| < 4.5 with 29 degrees of freedom: a false alarm in 10,000.
  EXPECT_NEAR(estimate.value, dense.log_det(), 4.5 * estimate.probe_error + 1e-3);
}

TEST(Laplace, ShapesThatDoNotAgreeAreRefused) {
  auto data = make_data("poisson", 30);
  const auto problem = make_problem("poisson");
  DenseLaplaceSystem system(problem.kernel, data.x);
  EXPECT_THROW(system.set_curvature(Matrix(Matrix::Constant(30, 1, -1.0))), InvalidArgument);
  EXPECT_THROW(system.set_curvature(Matrix(Matrix::Constant(20, 1, 1.0))), DimensionMismatch);
  data.offset.resize(0);
  EXPECT_THROW(find_mode(problem, data, system, {}, {}), DimensionMismatch);
}

}  // namespace laplace_test
}  // namespace mercer::inference
