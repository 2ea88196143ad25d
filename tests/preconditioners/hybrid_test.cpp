#include "mercer/preconditioners/hybrid.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace hybrid_test {

using testing::small_gp;

int iterations(const testing::SmallGp& gp, const char* name, const PreconditionerOptions& options) {
  const auto built = make(name, gp.kernel_operator, gp.noise, options);
  Matrix x = Matrix::Zero(gp.y.rows(), 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-6, .max_iterations = 5000},
                                 {.preconditioner = built.preconditioner.get()});
  EXPECT_TRUE(result.converged());
  return result.iterations;
}

TEST(Hybrid, IsTheInverseOfItsDefinition) {
  const auto gp = small_gp({.num_points = 120, .noise = 1e-2, .kernel = "matern52:iso"});
  const Matrix f = approximations::rpcholesky(gp.kernel_operator, {.rank = 15}).factor;
  // In double throughout, so that the two agree to rounding.
  const approximations::VecchiaOptions options{.neighbours = 9, .float32_from = 1};
  const Hybrid p(gp.kernel_operator, gp.noise, f, options);
  const approximations::Vecchia g(gp.kernel_operator, gp.noise, f, options);
  Matrix dense_g(120, 120);
  g.multiply(Matrix::Identity(120, 120), dense_g);
  const Matrix dense = f * f.transpose() + (dense_g.transpose() * dense_g).inverse();
  const Matrix r = testing::random_matrix(120, 3, 1), expected = dense.ldlt().solve(r);
  Matrix z(120, 3);
  p.solve(r, z);
  // Condition number 1e4 times rounding.
  EXPECT_LE((z - expected).norm(), 1e-10 * expected.norm());
  EXPECT_NEAR(p.log_det(), dense.ldlt().vectorD().array().log().sum(), 1e-8);
}

TEST(Hybrid, IsNeverFarFromTheBetterOfItsParts) {
  for (const double lengthscale : {0.1, 0.5, 1.5, 5.0}) {
    const auto gp = small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = lengthscale});
    const int low_rank = iterations(gp, "rpcholesky", {.rank = 40});
    const int sparse = iterations(gp, "vecchia", {.neighbours = 15});
    const int both = iterations(gp, "hybrid", {.rank = 40, .neighbours = 15});
    EXPECT_LE(both, 1.5 * std::min(low_rank, sparse) + 2) << lengthscale;
    EXPECT_LT(both, iterations(gp, "none", {})) << lengthscale;
  }
}

TEST(Hybrid, BeatsBothPartsInBetween) {
  const auto gp = small_gp({.num_points = 400, .num_inputs = 3, .noise = 1e-3, .lengthscale = 1});
  const int both = iterations(gp, "hybrid", {.rank = 60, .neighbours = 20});
  EXPECT_LT(both, iterations(gp, "rpcholesky", {.rank = 60}));
  EXPECT_LT(both, iterations(gp, "vecchia", {.neighbours = 20}));
}

TEST(Hybrid, WithNothingLeftIsTheLowRankPart) {
  const auto gp = small_gp({.num_points = 200, .noise = 1e-4, .lengthscale = 5});
  const auto built = make("hybrid", gp.kernel_operator, gp.noise, {.rank = 200});
  EXPECT_NE(built.report.notes.find("nothing of K was left"), std::string::npos);
  EXPECT_LE(iterations(gp, "hybrid", {.rank = 200}), 3);
}

}  // namespace hybrid_test
}  // namespace mercer::preconditioners
