// Facts of nystrom and fitc; approximations/nystrom_test.cpp has those of the approximation.
#include "mercer/approximations/nystrom.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace nystrom_test {

using testing::small_gp;

/// K_xu K_uu^-1 K_ux with the landmarks that the preconditioner draws.
Matrix dense_nystrom(const testing::SmallGp& gp, Index rank, Landmarks choice) {
  const auto points =
      approximations::choose_landmarks(
          gp.kernel_operator, {.count = rank, .choice = choice, .noise_variance = gp.noise})
          .points;
  const Matrix& k = gp.kernel_operator.matrix();
  const Matrix k_xu = k(Eigen::all, points), k_uu = k(points, points);
  return k_xu * k_uu.ldlt().solve(k_xu.transpose());
}

void expect_inverse(const Built& built, const Matrix& p) {
  Matrix inverse(p.rows(), p.rows());
  built.preconditioner->solve(Matrix::Identity(p.rows(), p.rows()), inverse);
  const Matrix expected = p.inverse();
  // The condition number of P is about 1e4.
  EXPECT_LE((inverse - expected).norm(), 1e-10 * expected.norm());
}

TEST(NystromPreconditioner, IsTheDenseInverse) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 0.5, .kernel = "matern32:iso"});
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage}) {
    const auto built =
        make("nystrom", gp.kernel_operator, gp.noise, {.rank = 20, .landmarks = choice});
    expect_inverse(built, dense_nystrom(gp, 20, choice) + gp.noise * Matrix::Identity(80, 80));
    EXPECT_EQ(built.report.rank, 20);
    const auto cost = preconditioner("nystrom").cost(80, 2, {.rank = 20, .landmarks = choice});
    EXPECT_EQ(built.report.kernel_values, cost.kernel_values);
  }
}

TEST(FitcPreconditioner, IsTheDenseInverse) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 0.5, .kernel = "matern32:iso"});
  const auto built =
      make("fitc", gp.kernel_operator, gp.noise, {.rank = 20, .landmarks = Landmarks::uniform});
  const Matrix low_rank = dense_nystrom(gp, 20, Landmarks::uniform);
  Matrix p = low_rank + gp.noise * Matrix::Identity(80, 80);
  p.diagonal() += (gp.kernel_operator.matrix() - low_rank).diagonal().cwiseMax(0.0);
  expect_inverse(built, p);
}

TEST(FitcPreconditioner, KeepsTheDiagonalOfANonStationaryKernel) {
  const auto gp = small_gp({.num_points = 50, .noise = 0.1, .kernel = "poly:2:iso"});
  const auto built = make("fitc", gp.kernel_operator, gp.noise, {.rank = 3});
  Matrix inverse(50, 50);
  built.preconditioner->solve(Matrix::Identity(50, 50), inverse);
  const Matrix p = inverse.inverse();
  // Rounding of the two inverses, relative to the largest entry.
  EXPECT_LE((p - gp.a.matrix()).diagonal().norm(), 1e-10 * p.norm());
}

int iterations(const testing::SmallGp& gp, const linalg::Preconditioner* p) {
  Matrix x = Matrix::Zero(gp.y.rows(), 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = p});
  EXPECT_TRUE(result.converged());
  return result.iterations;
}

TEST(NystromPreconditioner, SavesIterations) {
  const auto gp = small_gp({.num_points = 300, .noise = 1e-3, .lengthscale = 1.5});
  const int without = iterations(gp, nullptr);
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage})
    for (const char* name : {"nystrom", "fitc"}) {
      const auto built =
          make(name, gp.kernel_operator, gp.noise, {.rank = 40, .landmarks = choice});
      EXPECT_LT(3 * iterations(gp, built.preconditioner.get()), without)
          << name << " " << to_string(choice);
    }
}

}  // namespace nystrom_test
}  // namespace mercer::preconditioners
