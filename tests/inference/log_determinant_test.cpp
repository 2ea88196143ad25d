#include "mercer/inference/log_determinant.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::inference {
namespace {

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

TEST(LogDeterminant, ALooseSolveSaysSo) {
  const auto gp = testing::small_gp({.num_points = 200, .noise = 1e-4});
  const auto p = preconditioners::make("jacobi", gp.kernel_operator, gp.noise);
  const auto loose = log_determinant(gp.a, *p.preconditioner, {.probes = 10, .tolerance = 0.5});
  const auto tight = log_determinant(gp.a, *p.preconditioner, {.probes = 10, .tolerance = 1e-6});
  EXPECT_GT(loose.solver_error, tight.solver_error);
  // A Gauss rule is an upper bound of each quadrature.
  EXPECT_GE(loose.value, tight.value);
}

}  // namespace
}  // namespace mercer::inference
