#include "mercer/studies/simulate.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::studies {
namespace simulate_test {

using inference::MeanKind;
using inference::Problem;

constexpr double kEnough = 1 << 30;

Problem problem(const char* kernel, Index d, double lengthscale, double noise) {
  auto k = kernels::Kernel::parse(kernel, d);
  k.set_all_lengthscales(lengthscale);
  return {k, noise, MeanKind::zero};
}

Matrix uniform(Index n, Index d) {
  Matrix x(n, d);
  Rng(1, "test points").fill_uniform(x);
  return x;
}

TEST(Simulate, DrawsHaveTheKernelAsCovariance) {
  const auto p = problem("2 * matern32:iso", 1, 1, 0.3);
  const Matrix x = Eigen::Vector3d(0.0, 0.5, 2.0);
  constexpr int draws = 20000;
  for (const auto method : {DrawMethod::exact, DrawMethod::vecchia}) {
    Matrix latent = Matrix::Zero(3, 3);
    double noise = 0;
    for (int s = 0; s < draws; ++s) {
      const auto draw = draw_from_gp(
          p, x, {.seed = static_cast<std::uint64_t>(s), .memory_bytes = kEnough, .method = method});
      latent += draw.latent * draw.latent.transpose() / draws;
      noise += (draw.target - draw.latent).squaredNorm() / (3.0 * draws);
    }
    const Matrix k = p.kernel.reference_matrix(x, x);
    // Standard deviation of a sample covariance entry <= 2 sqrt(2 / draws) = 0.02; 4.5 of them.
    EXPECT_LE((latent - k).cwiseAbs().maxCoeff(), 0.09);
    EXPECT_NEAR(noise, 0.3, 4.5 * 0.3 * std::sqrt(2.0 / (3 * draws)));
  }
}

// y'H^-1 y is chi-square with N degrees of freedom when y is a draw from the exact model. Over 8
// draws of 2,000 points its standard deviation is sqrt(2 x 16,000); beyond 4.5 of them is a false
// alarm in 7 of 10^6. A law that is off by 2 % of the noise in every direction would be seen.
TEST(Simulate, ExactLikelihoodOfASparseDrawIsWhereItMustBe) {
  const Matrix x = uniform(2000, 2);
  for (const char* kernel : {"matern32:iso", "rbf:iso + linear:iso", "periodic:iso"}) {
    const auto p = problem(kernel, 2, 0.3, 0.01);
    Matrix h(2000, 2000), y(2000, 8);
    operators::dense_matrix(p.kernel, x, h);
    h.diagonal().array() += p.noise();
    for (Index s = 0; s < y.cols(); ++s)
      y.col(s) = draw_from_gp(p, x,
                              {.seed = static_cast<std::uint64_t>(s),
                               .memory_bytes = kEnough,
                               .method = DrawMethod::vecchia})
                     .target;
    Matrix a = y;
    linalg::Cholesky(std::move(h)).solve_in_place(a);
    const double found = (y.array() * a.array()).sum(), expected = 16000;
    EXPECT_LT(std::abs(found - expected), 4.5 * std::sqrt(2 * expected)) << kernel;
  }
}

// Half the variance of the increments over a lag h is v - k(h). Mean and standard error are over 16
// independent draws: |t| > 6.5 with 15 degrees of freedom is a false alarm in 10^5, for each lag.
TEST(Simulate, VariogramOfASparseDrawIsThatOfTheKernel) {
  constexpr Index pairs = 5000, draws = 16;
  const auto p = problem("2 * matern32:iso", 2, 0.1, 0.01);
  const std::vector<double> lags = {0.003, 0.01, 0.03, 0.1, 0.3};
  Matrix x(2 * pairs, 2);
  x.topRows(pairs) = uniform(pairs, 2);
  for (Index i = 0; i < pairs; ++i) {
    const double h = lags[static_cast<std::size_t>(i) % lags.size()];
    const double angle = 2.4 * static_cast<double>(i);
    x.row(pairs + i) = x.row(i) + h * Eigen::RowVector2d(std::cos(angle), std::sin(angle));
  }
  Matrix found = Matrix::Zero(static_cast<Index>(lags.size()), draws);
  for (Index s = 0; s < draws; ++s) {
    const auto draw = draw_from_gp(
        p, x, {.seed = static_cast<std::uint64_t>(s), .memory_bytes = kEnough, .neighbours = 30});
    ASSERT_EQ(draw.method, DrawMethod::vecchia);
    for (Index i = 0; i < pairs; ++i)
      found(i % found.rows(), s) += 0.5 * std::pow(draw.latent(pairs + i) - draw.latent(i), 2) /
                                    (static_cast<double>(pairs) / double(lags.size()));
  }
  for (Index l = 0; l < found.rows(); ++l) {
    const double a = std::sqrt(3.0) * lags[static_cast<std::size_t>(l)] / 0.1;
    const double expected = 2 * (1 - (1 + a) * std::exp(-a));
    const double mean = found.row(l).mean();
    const double error = std::sqrt((found.row(l).array() - mean).square().sum() /
                                   static_cast<double>(draws * (draws - 1)));
    EXPECT_LT(std::abs(mean - expected), 6.5 * error) << lags[static_cast<std::size_t>(l)];
    EXPECT_LT(error, 0.15 * expected);  // the comparison says something
  }
}

// Above 30,000 points the neighbours of such a kernel are chosen among candidates. A draw is a
// linear function of x but for the nugget, whose standard deviation is 1e-5 here; what is left of
// it after the fit grows a little from point to point.
TEST(Simulate, ASparseDrawOfALinearKernelIsLinear) {
  const auto p = problem("linear:iso", 3, 1, 0.01);
  const Matrix x = uniform(31000, 3);
  const auto draw = draw_from_gp(p, x, {.memory_bytes = kEnough, .neighbours = 12});
  const Vector w = (x.transpose() * x).ldlt().solve(x.transpose() * draw.latent);
  EXPECT_GT(w.norm(), 0.1);
  EXPECT_LT((draw.latent - x * w).cwiseAbs().maxCoeff(), 1e-3);
}

TEST(Simulate, SameSeedSameBitsOnAnyThreads) {
  const auto p = problem("rbf", 2, 1, 0.1);
  Matrix x(300, 2);
  Rng(1, "x").fill_normal(x);
  for (const auto method : {DrawMethod::exact, DrawMethod::vecchia}) {
    const DrawOptions options{.seed = 7, .memory_bytes = kEnough, .method = method};
    const testing::WithThreads first(1);
    const auto one = draw_from_gp(p, x, options);
    const testing::WithThreads second(3);
    EXPECT_EQ(one.target, draw_from_gp(p, x, options).target);
  }
}

TEST(Simulate, TheMethodFollowsFromTheSizeUnlessSaid) {
  EXPECT_EQ(resolve({}, kMostExactDraw), DrawMethod::exact);
  EXPECT_EQ(resolve({}, kMostExactDraw + 1), DrawMethod::vecchia);
  EXPECT_EQ(resolve({.neighbours = 10}, 50), DrawMethod::vecchia);
  EXPECT_EQ(resolve({.method = DrawMethod::exact}, 10 * kMostExactDraw), DrawMethod::exact);
  EXPECT_THROW(resolve({.method = DrawMethod::exact, .neighbours = 3}, 50), InvalidArgument);
  EXPECT_THROW(resolve({.neighbours = 0}, 50), InvalidArgument);
  for (const auto& name : draw_method_names()) EXPECT_EQ(to_string(draw_method(name)), name);
  EXPECT_THROW(draw_method("magic"), InvalidArgument);
}

TEST(Simulate, TooLargeIsRefused) {
  const auto p = problem("rbf", 1, 1, 0.1);
  const Matrix x = Matrix::Zero(1000, 1);
  EXPECT_THROW(draw_from_gp(p, x, {.memory_bytes = 4 << 20}), DoesNotFit);
  EXPECT_THROW(draw_from_gp(p, x, {.memory_bytes = 1 << 16, .method = DrawMethod::vecchia}),
               DoesNotFit);
  // 100 neighbours of 1,000 points take less than their covariance.
  EXPECT_NO_THROW(draw_from_gp(p, x, {.memory_bytes = 4 << 20, .method = DrawMethod::vecchia}));
}

TEST(Simulate, ProgressCanStopASparseDraw) {
  const auto p = problem("matern12:iso", 1, 1, 0.1);
  const auto stop = [](const Progress& progress) {
    EXPECT_EQ(progress.stage, "draw");
    return Action::stop;
  };
  EXPECT_THROW(draw_from_gp(p, uniform(100, 1), {.memory_bytes = kEnough, .neighbours = 5}, stop),
               Interrupted);
}

}  // namespace simulate_test
}  // namespace mercer::studies
