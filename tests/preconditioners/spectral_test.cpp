// Facts of spectral and svd; approximations/ has those of the approximations.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "mercer/approximations/random_features.hpp"
#include "mercer/approximations/randomized_svd.hpp"
#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace spectral_test {

using testing::small_gp;

void expect_inverse(const Built& built, const Matrix& p) {
  Matrix inverse(p.rows(), p.rows());
  built.preconditioner->solve(Matrix::Identity(p.rows(), p.rows()), inverse);
  const Matrix expected = p.inverse();
  // The condition number of P is about 1e4.
  EXPECT_LE((inverse - expected).norm(), 1e-10 * expected.norm());
}

int iterations(const testing::SmallGp& gp, const linalg::Preconditioner* p) {
  Matrix x = Matrix::Zero(gp.y.rows(), 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = p});
  EXPECT_TRUE(result.converged());
  return result.iterations;
}

TEST(SpectralPreconditioner, IsTheDenseInverse) {
  const auto gp = small_gp({.num_points = 80, .kernel = "matern32:iso + linear:iso"});
  const auto built = make("spectral", gp.kernel_operator, gp.noise, {.rank = 21, .seed = 2});
  const approximations::RandomFeatures features(gp.kernel_operator.kernel(), 21, 2);
  Matrix phi(80, features.count());
  features.evaluate(gp.kernel_operator.points(), phi);
  expect_inverse(built, phi * phi.transpose() + gp.noise * Matrix::Identity(80, 80));
  EXPECT_EQ(built.report.rank, 20);
  EXPECT_EQ(built.report.kernel_values, 0);
}

TEST(SpectralPreconditioner, SavesIterations) {
  const auto gp = small_gp({.num_points = 300, .noise = 0.1, .lengthscale = 1});
  const auto built = make("spectral", gp.kernel_operator, gp.noise, {.rank = 300});
  EXPECT_LT(iterations(gp, built.preconditioner.get()), iterations(gp, nullptr));
}

TEST(SpectralPreconditioner, RefusesAndRaises) {
  const auto refused = small_gp({.num_points = 20, .num_inputs = 20, .kernel = "poly:6:iso"});
  EXPECT_THROW(make("spectral", refused.kernel_operator, 0.1), InvalidArgument);
  const auto raised = small_gp({.num_points = 60, .kernel = "rbf*poly:2 + matern12"});
  const auto built = make("spectral", raised.kernel_operator, 0.1, {.rank = 3});
  EXPECT_NE(built.report.notes.find("14 features for a rank of 3"), std::string::npos)
      << built.report.notes;
}

TEST(SvdPreconditioner, IsTheDenseInverse) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 0.5, .kernel = "matern32:iso"});
  const auto built = make("svd", gp.kernel_operator, gp.noise, {.rank = 20});
  const auto low_rank = approximations::randomized_svd(gp.kernel_operator, {.rank = 20});
  expect_inverse(
      built, low_rank.factor * low_rank.factor.transpose() + gp.noise * Matrix::Identity(80, 80));
  EXPECT_EQ(built.report.products, 60);
  EXPECT_EQ(preconditioner("svd").cost(80, 2, {.rank = 20}).products, 60);
}

TEST(SvdPreconditioner, SavesIterations) {
  const auto gp = small_gp({.num_points = 300, .noise = 1e-3, .lengthscale = 1.5});
  const auto built = make("svd", gp.kernel_operator, gp.noise, {.rank = 40});
  EXPECT_LT(4 * iterations(gp, built.preconditioner.get()), iterations(gp, nullptr));
}

TEST(SvdPreconditioner, DefaultRankIsTheRoot) {
  const auto gp = small_gp({.num_points = 100, .lengthscale = 0.3, .kernel = "matern12:iso"});
  EXPECT_EQ(make("svd", gp.kernel_operator, gp.noise).report.rank, 10);
}

}  // namespace spectral_test
}  // namespace mercer::preconditioners
