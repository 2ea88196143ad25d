#include "mercer/inference/system.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::inference {
namespace system_test {

struct Small {
  kernels::Kernel kernel = kernels::Kernel::parse("matern32:iso", 2);
  Matrix x = Matrix(400, 2);
  Matrix b = Matrix(400, 3);
  linalg::Diagonal noise = 0.05;
  explicit Small(bool equal_noise = true) {
    Rng rng(3, "system");
    rng.fill_normal(x);
    rng.fill_normal(b);
    Vector v(400);
    rng.fill_uniform(v);
    if (!equal_noise) noise = Vector(0.02 * (v.array() + 0.01).inverse());  // 0.02 .. 2
  }
  Matrix dense() const {
    Matrix h = kernel.reference_matrix(x, x);
    h.diagonal() += noise.vector(400);
    return h;
  }
};

struct Case {
  const char* solver;
  const char* preconditioner;
  SolvePrecision precision;
};

class EverySystem : public ::testing::TestWithParam<std::tuple<Case, bool, std::string>> {};

TEST_P(EverySystem, ReachesItsToleranceInTrueResidual) {
  const auto& [method, equal_noise, op] = GetParam();
  const Small problem(equal_noise);
  SystemChoice choice;
  choice.solver = method.solver;
  choice.preconditioner = method.preconditioner;
  choice.op = op;
  choice.precision = method.precision;
  choice.tolerance = 1e-9;
  if (choice.preconditioner == "pivoted-cholesky") choice.preconditioning.rank = 60;
  const RegularizedSystem system(problem.kernel, problem.noise, problem.x, choice);
  Matrix x = Matrix::Zero(400, 3);

  const auto report = system.solve(problem.b, x);

  EXPECT_EQ(report.stop, StopReason::converged);
  const Matrix h = problem.dense();
  const Vector true_norms = (problem.b - h * x).colwise().norm();
  for (Index j = 0; j < 3; ++j) {
    EXPECT_LE(true_norms(j), 1.1e-9 * problem.b.col(j).norm());
    // Reported and recomputed agree up to the rounding of H x itself: 1e-14 of |H| |x|, as tests of
    // the operators have it.
    const double rounding = 1e-14 * (h.cwiseAbs() * x.col(j).cwiseAbs()).norm();
    EXPECT_NEAR(report.residual_norms(j), true_norms(j), 0.1 * true_norms(j) + rounding);
  }
  const Matrix exact = h.llt().solve(problem.b);
  EXPECT_LE((x - exact).norm(), 1e-7 * exact.norm());
}

INSTANTIATE_TEST_SUITE_P(
    Methods, EverySystem,
    ::testing::Combine(::testing::Values(Case{"cholesky", "none", SolvePrecision::float64},
                                         Case{"cg", "none", SolvePrecision::float64},
                                         Case{"cg", "none", SolvePrecision::mixed},
                                         Case{"cg", "jacobi", SolvePrecision::float64},
                                         Case{"cg", "pivoted-cholesky", SolvePrecision::float64},
                                         Case{"cg", "pivoted-cholesky", SolvePrecision::mixed},
                                         Case{"cg", "auto", SolvePrecision::mixed}),
                       ::testing::Bool(), ::testing::ValuesIn(operators::operators().names())));

TEST(RegularizedSystem, AnOperatorAddedAtRunTimeSolvesLikeTheOneItWraps) {
  static int made;
  made = 0;
  operators::OperatorInfo dummy = operators::default_operator();
  dummy.name = "dummy";
  dummy.make = [](const kernels::Kernel& kernel, const Matrix& x, operators::Precision precision) {
    ++made;
    return operators::default_operator().make(kernel, x, precision);
  };
  const auto registered = operators::operators().add(dummy);
  const Small problem;
  for (const auto precision : {SolvePrecision::float64, SolvePrecision::mixed}) {
    const auto solve = [&](const SystemChoice& choice) {
      Matrix x = Matrix::Zero(400, 3);
      RegularizedSystem(problem.kernel, problem.noise, problem.x, choice).solve(problem.b, x);
      return x;
    };
    SystemChoice choice;
    choice.solver = "cg";
    choice.precision = precision;
    const Matrix wrapped = solve(choice);
    choice.op = "dummy";

    const int before = made;
    const auto k = make_operators(problem.kernel, problem.x, "dummy", precision);
    EXPECT_EQ(made, before + 1);
    EXPECT_TRUE(solve(choice) == wrapped);
    EXPECT_EQ(made, before + 2);
  }
}

TEST(RegularizedSystem, SinglePrecisionDoesNotClaimWhatItCannotShow) {
  const Small problem;
  SystemChoice choice;
  choice.solver = "cg";
  choice.precision = SolvePrecision::float32;
  choice.tolerance = 1e-12;
  const RegularizedSystem system(problem.kernel, problem.noise, problem.x, choice);
  Matrix x = Matrix::Zero(400, 3);
  const auto report = system.solve(problem.b, x);
  EXPECT_NE(report.stop, StopReason::converged);
  EXPECT_GT(report.relative_residual, 1e-12);
}

TEST(RegularizedSystem, JitterIsReported) {
  // Every point twice and noise at the rounding level: not positive definite in floating point.
  Matrix x(300, 1);
  for (Index i = 0; i < 300; ++i) x(i, 0) = 1e-3 * static_cast<double>(i / 2);
  const auto kernel = kernels::Kernel::parse("rbf", 1);
  const RegularizedSystem system(kernel, 1e-18, x, {});
  EXPECT_GT(system.jitter(), 0);
  EXPECT_LE(system.jitter(), 1e-6);
  EXPECT_DOUBLE_EQ(system.noise()(0), 1e-18 + system.jitter());
}

TEST(RegularizedSystem, NoiseMustBePositive) {
  const Small problem;
  EXPECT_THROW(RegularizedSystem(problem.kernel, 0.0, problem.x, {}), InvalidArgument);
  EXPECT_THROW(RegularizedSystem(problem.kernel, -1.0, problem.x, {}), InvalidArgument);
  EXPECT_THROW(RegularizedSystem(problem.kernel, Vector(Vector::Ones(3)), problem.x, {}),
               DimensionMismatch);
}

}  // namespace system_test
}  // namespace mercer::inference
