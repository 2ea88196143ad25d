// The laws that every preconditioner obeys, and what the registry promises.
#include "mercer/preconditioners/registry.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <string>
#include <tuple>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "tests/preconditioners/every_preconditioner.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::preconditioners {
namespace registry_test {

using testing::random_matrix;
using testing::small_gp;

/// P from its own inverse: what solve() means, as a dense matrix.
Matrix dense_inverse(const linalg::Preconditioner& p) {
  Matrix inverse(p.size(), p.size());
  p.solve(Matrix::Identity(p.size(), p.size()), inverse);
  return inverse;
}

class Preconditioners : public ::testing::TestWithParam<Case> {
 protected:
  const PreconditionerInfo& info() const { return std::get<0>(GetParam()); }
  testing::SmallGp problem(testing::SmallGpOptions options = {}) const {
    if (!std::get<1>(GetParam())) options.noise_spread = 100;
    return small_gp(options);
  }
  /// Those that iterate inside are asked to do so to the end: P is then one matrix.
  Built build(const testing::SmallGp& gp, PreconditionerOptions options = {}) const {
    return build(gp, gp.row_noise, options);
  }
  Built build(const testing::SmallGp& gp, const linalg::Diagonal& noise,
              PreconditionerOptions options) const {
    if (info().takes.inner_tolerance) options.inner_tolerance = 1e-13;
    return make(info().name, gp.kernel_operator, noise, options);
  }
  /// Inner iterations stop at about this relative error; direct ones at rounding.
  double accuracy() const { return info().takes.inner_tolerance ? 1e-8 : 1e-12; }
};

TEST_P(Preconditioners, SolveIsTheInverseOfASymmetricPositiveMatrix) {
  const auto gp = problem({.num_points = 150, .kernel = "matern52:iso"});
  const auto built = build(gp);
  const Matrix inverse = dense_inverse(*built.preconditioner);
  EXPECT_LE((inverse - inverse.transpose()).norm(), accuracy() * inverse.norm());
  EXPECT_GT(Eigen::SelfAdjointEigenSolver<Matrix>(inverse).eigenvalues()(0), 0.0);
  const Matrix p = inverse.inverse(), v = random_matrix(150, 3, 1);
  Matrix z(150, 3);
  built.preconditioner->solve(p * v, z);
  EXPECT_LE((z - v).norm(), 1e4 * accuracy() * v.norm());
}

TEST_P(Preconditioners, TheNoiseOfEachPointIsAddedToTheDiagonal) {
  if (info().name == "ssor") GTEST_SKIP() << "P is a product; see ssor_test.cpp";
  const Index n = 60;
  const auto gp = problem({.num_points = n, .noise = 0.1});
  // What a low rank or a sparse factor leaves out may depend on the noise: nothing is left out.
  PreconditionerOptions options;
  if (info().takes.rank) options.rank = n;
  if (info().takes.neighbours) options.neighbours = n;
  if (info().takes.drop) options.drop = 0;
  if (info().takes.delta) options.delta = 0.1;
  const Matrix p = dense_inverse(*build(gp, options).preconditioner).inverse();
  const Matrix other = dense_inverse(*build(gp, 0.05, options).preconditioner).inverse();
  const Vector noise = gp.row_noise.vector(n);
  const Matrix expected = (noise.array() - 0.05).matrix().asDiagonal();
  // hybrid takes F F' in float32: 1e-7 of K, whose norm is below n.
  EXPECT_LE((p - other - expected).norm(), 1e-6 * n);
}

TEST_P(Preconditioners, LogDeterminantIsTheDenseOne) {
  const auto gp = problem({.num_points = 90});
  const auto built = build(gp);
  if (!info().has_log_det) {
    EXPECT_THROW(built.preconditioner->log_det(), InvalidArgument);
    return;
  }
  const Matrix inverse = dense_inverse(*built.preconditioner);
  const double expected = -inverse.ldlt().vectorD().array().log().sum();
  EXPECT_NEAR(built.preconditioner->log_det(), expected, 1e-8 * std::abs(expected) + 1e-8);
}

TEST_P(Preconditioners, SamplesHaveItsCovariance) {
  const Index n = 30, draws = 20000;
  const auto gp = problem({.num_points = n, .noise = 0.1});
  const auto built = build(gp);
  Rng rng(5, "samples");
  Matrix z(n, draws);
  if (!info().can_sample) {
    EXPECT_THROW(built.preconditioner->sample(rng, z), InvalidArgument);
    return;
  }
  const Matrix p = dense_inverse(*built.preconditioner).inverse();
  built.preconditioner->sample(rng, z);
  const Matrix covariance = z * z.transpose() / static_cast<double>(draws);
  // The relative Frobenius error has mean about sqrt(n / draws); three times that is never met
  // by chance.
  EXPECT_LE((covariance - p).norm(), 3 * std::sqrt(double(n) / draws) * p.norm());
  EXPECT_LE(z.rowwise().mean().norm(), 5 * std::sqrt(p.trace() / draws));
}

TEST_P(Preconditioners, HardCasesAreClean) {
  const testing::SmallGpOptions cases[] = {
      {.num_points = 1},
      {.num_points = 2, .noise = 1e-12},
      {.num_points = 60, .noise = 1e-12, .lengthscale = 5},
      {.num_points = 60, .duplicate_points = true},
      {.num_points = 60, .noise = 1e-12, .duplicate_points = true},
      {.num_points = 60, .lengthscale = 1e-6},
      {.num_points = 60, .lengthscale = 1e6}};
  for (const auto& options : cases) {
    const auto gp = problem(options);
    PreconditionerOptions asked;
    if (info().takes.rank) asked.rank = 100;  // more than there are points
    const auto built = build(gp, asked);
    const Matrix r = random_matrix(options.num_points, 2, 1);
    Matrix z(options.num_points, 2);
    built.preconditioner->solve(r, z);
    EXPECT_TRUE(z.allFinite());
    for (Index j = 0; j < 2; ++j) EXPECT_GT(r.col(j).dot(z.col(j)), 0.0);
    if (info().has_log_det) {
      EXPECT_TRUE(std::isfinite(built.preconditioner->log_det()));
    }
    EXPECT_LE(built.report.rank, options.num_points);
  }
}

TEST_P(Preconditioners, CgConvergesToTheSameAnswer) {
  // The second kernel has leaves that see one input each.
  for (const char* kernel : {"rbf:iso", "matern32(0) * matern12(1)"}) {
    const auto gp = problem({.num_points = 120, .noise = 1e-3, .kernel = kernel});
    const auto built = build(gp);
    Matrix x = Matrix::Zero(120, 1);
    const krylov::SolverOptions options{.tolerance = 1e-10, .max_iterations = 5000};
    const krylov::SolverContext context{.preconditioner = built.preconditioner.get()};
    const auto result = info().fixed ? krylov::cg(gp.a, gp.y, x, options, context)
                                     : krylov::fcg(gp.a, gp.y, x, options, context);
    EXPECT_TRUE(result.converged()) << kernel;
    const Matrix exact = gp.a.matrix().ldlt().solve(gp.y);
    // Residual 1e-10 times the condition number 1e5.
    EXPECT_LE((x - exact).norm(), 1e-5 * exact.norm()) << kernel;
  }
}

TEST_P(Preconditioners, CostsAreStatedAndReported) {
  const auto gp = problem({.num_points = 120});
  const auto built = build(gp);
  const auto& info = this->info();
  const auto cost = info.cost(120, 2, {});
  EXPECT_EQ(built.report.name, info.name);
  EXPECT_GT(cost.bytes, 0);
  EXPECT_GE(cost.peak_bytes, cost.bytes);
  EXPECT_GT(cost.apply_flops + cost.apply_products, 0);
  EXPECT_GT(cost.build_flops + cost.thin_flops + cost.kernel_values + cost.products, 0);
  EXPECT_LE(built.report.bytes, cost.bytes);
  EXPECT_LE(built.report.kernel_values, cost.kernel_values);
  EXPECT_LE(built.report.products, cost.products);
}

TEST_P(Preconditioners, ManyColumnsAreTheSameAsOne) {
  const auto gp = problem({.num_points = 80, .kernel = "matern32:iso"});
  const auto built = build(gp);
  const Matrix r = random_matrix(80, 5, 3);
  Matrix together(80, 5), alone(80, 5);
  built.preconditioner->solve(r, together);
  for (Index j = 0; j < 5; ++j)
    built.preconditioner->solve(r.middleCols(j, 1), alone.middleCols(j, 1));
  EXPECT_LE((together - alone).norm(), accuracy() * together.norm());
}

TEST_P(Preconditioners, SameSeedSameBitsOnAnyNumberOfThreads) {
  const auto gp = problem({.num_points = 300, .kernel = "matern32:iso"});
  const Matrix r = random_matrix(300, 2, 3);
  const int threads = num_threads();
  Matrix one(300, 2), many(300, 2);
  set_num_threads(1);
  build(gp, {.seed = 4}).preconditioner->solve(r, one);
  set_num_threads(3);
  build(gp, {.seed = 4}).preconditioner->solve(r, many);
  set_num_threads(threads);
  EXPECT_TRUE(one == many);
}

TEST_P(Preconditioners, OptionsItDoesNotTakeAreRefused) {
  const auto gp = problem();
  const auto& takes = info().takes;
  const auto refused = [&](const PreconditionerOptions& options) {
    try {
      check(info(), options);
      return false;
    } catch (const InvalidArgument&) {
      return true;
    }
  };
  EXPECT_EQ(refused({.rank = 3}), !takes.rank);
  EXPECT_EQ(refused({.neighbours = 3}), !takes.neighbours);
  EXPECT_EQ(refused({.blocks = 3}), !takes.blocks);
  EXPECT_EQ(refused({.delta = 0.1}), !takes.delta);
  EXPECT_EQ(refused({.inner_tolerance = 0.1}), !takes.inner_tolerance);
  EXPECT_EQ(refused({.drop = 0.1}), !takes.drop);
  EXPECT_EQ(refused({.landmarks = Landmarks::uniform}), !takes.landmarks);
}

INSTANTIATE_TEST_SUITE_P(Registry, Preconditioners,
                         ::testing::Combine(::testing::ValuesIn(all_but_none()), ::testing::Bool()),
                         test_name);

TEST(PreconditionerRegistry, NoneIsNoPreconditioner) {
  const auto gp = small_gp();
  EXPECT_EQ(make("none", gp.kernel_operator, gp.noise).preconditioner, nullptr);
  EXPECT_THROW(make("none", gp.kernel_operator, gp.noise, {.rank = 3}), InvalidArgument);
  EXPECT_THROW(make("no-such", gp.kernel_operator, gp.noise), InvalidArgument);
}

TEST(PreconditionerRegistry, TheDefaultRankGrowsLikeTheRoot) {
  EXPECT_EQ(default_rank(10), 10);
  EXPECT_EQ(default_rank(500), 100);
  EXPECT_EQ(default_rank(10000), 400);
  EXPECT_EQ(default_rank(1000000), 1000);
}

TEST(PreconditionerRegistry, NoiseMustFitThePoints) {
  const auto gp = small_gp();
  EXPECT_THROW(make("jacobi", gp.kernel_operator, Vector(Vector::Ones(3))), DimensionMismatch);
}

TEST(PivotedCholesky, WithEveryPointSolvesAtOnce) {
  const auto gp = small_gp({.num_points = 60, .noise = 1e-2, .seed = 7});
  const auto built = make("pivoted-cholesky", gp.kernel_operator, gp.noise, {.rank = 60});
  Matrix x = Matrix::Zero(60, 1);
  const auto result = krylov::cg(gp.a, gp.y, x, {.tolerance = 1e-8},
                                 {.preconditioner = built.preconditioner.get()});
  EXPECT_TRUE(result.converged());
  EXPECT_LE(result.iterations, 2);
}

TEST(PivotedCholesky, SavesIterations) {
  const auto gp = small_gp({.num_points = 300, .noise = 1e-3, .lengthscale = 1.5});
  const auto built = make("pivoted-cholesky", gp.kernel_operator, gp.noise, {.rank = 40});
  Matrix x = Matrix::Zero(300, 1), y = x;
  const auto with = krylov::cg(gp.a, gp.y, x, {}, {.preconditioner = built.preconditioner.get()});
  const auto without = krylov::cg(gp.a, gp.y, y);
  EXPECT_TRUE(with.converged() && without.converged());
  EXPECT_LT(4 * with.iterations, without.iterations);
}

}  // namespace registry_test
}  // namespace mercer::preconditioners
