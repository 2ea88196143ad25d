#include "mercer/preconditioners/vecchia.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace vecchia_test {

using testing::small_gp;

TEST(VecchiaPreconditioner, WithEveryNeighbourIsTheInverse) {
  const auto gp = small_gp({.num_points = 60, .noise = 1e-2});
  const auto built = make("vecchia", gp.kernel_operator, gp.noise, {.neighbours = 500});
  EXPECT_EQ(built.report.neighbours, 59);
  EXPECT_NE(built.report.notes.find("500 neighbours cut"), std::string::npos);
  const Matrix r = testing::random_matrix(60, 2, 1), expected = gp.a.matrix().ldlt().solve(r);
  Matrix z(60, 2);
  built.preconditioner->solve(r, z);
  // Condition number 5e3 times rounding.
  EXPECT_LE((z - expected).norm(), 1e-10 * expected.norm());
}

TEST(VecchiaPreconditioner, SavesIterationsAtShortLengthscales) {
  const auto gp =
      small_gp({.num_points = 400, .noise = 1e-3, .lengthscale = 0.3, .kernel = "matern32:iso"});
  const auto built = make("vecchia", gp.kernel_operator, gp.noise, {.neighbours = 20});
  Matrix x = Matrix::Zero(400, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = built.preconditioner.get()});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(5 * with.iterations, without.iterations);
}

TEST(VecchiaPreconditioner, SaysWhenTheNoiseIsRaised) {
  const auto gp = small_gp({.num_points = 40, .noise = 1e-14});
  const auto built = make("vecchia", gp.kernel_operator, gp.noise);
  EXPECT_NE(built.report.notes.find("noise variance 1e-14 taken as 1e-12"), std::string::npos);
}

TEST(VecchiaPreconditioner, TheDefaultGrowsInSteps) {
  EXPECT_EQ(default_neighbours(1), 0);
  EXPECT_EQ(default_neighbours(10), 9);
  EXPECT_EQ(default_neighbours(4999), 30);
  EXPECT_EQ(default_neighbours(5000), 60);
  EXPECT_EQ(default_neighbours(30001), 100);
}

}  // namespace vecchia_test
}  // namespace mercer::preconditioners
