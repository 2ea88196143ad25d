// Approximations cancelled in the middle: sparse and low-rank factors, searches, landmarks.
#include <gtest/gtest.h>

#include "mercer/approximations/clusters.hpp"
#include "mercer/approximations/landmarks.hpp"
#include "mercer/approximations/pivoted_cholesky.hpp"
#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/approximations/vecchia.hpp"
#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/testing/cancelling.hpp"

namespace mercer::approximations {
namespace cancel_test {

constexpr Index kPoints = 2000;

struct World {
  explicit World(Index inputs = 3)
      : kernel(kernels::Kernel::parse("matern32:ard", inputs)), x(kPoints, inputs) {
    Rng(5, "cancel").fill_normal(x);
    k = std::make_unique<operators::TiledOperator>(kernel, x);
  }
  kernels::Kernel kernel;
  Matrix x;
  std::unique_ptr<operators::TiledOperator> k;
};

TEST(Cancel, AVecchiaFactor) {
  const World w;
  const VecchiaOptions options{.neighbours = 10, .seed = 2};
  const Vecchia before(*w.k, 0.1, options);
  // Tasks of at most a hundred rows, in the search and in the factor.
  EXPECT_GE(testing::expect_cancellable([&] { const Vecchia v(*w.k, 0.1, options); }), 20);
  const Vecchia after(*w.k, 0.1, options);
  EXPECT_EQ(after.log_det(), before.log_det());

  Matrix x = Matrix::Ones(kPoints, 9), y = x;
  EXPECT_GE(testing::expect_cancellable([&] { before.multiply(x, y); }), 2);
  EXPECT_GE(testing::expect_cancellable([&] { before.solve(y); }), 9);
}

TEST(Cancel, AVecchiaLikelihood) {
  const World w;
  const linalg::Diagonal noise = 0.1;
  const VecchiaLikelihood likelihood(w.kernel, noise, w.x, {.neighbours = 10});
  EXPECT_GE(testing::expect_cancellable(
                [&] { const VecchiaLikelihood again(w.kernel, noise, w.x, {.neighbours = 10}); }),
            8);
}

TEST(Cancel, ASearchForNeighbours) {
  for (const Index inputs : {3, 8}) {  // by a tree, by tiles
    const World w(inputs);
    const auto search = [&] { return most_correlated({w.kernel, w.x, 0.1}, {.count = 10}); };
    const auto before = search();
    EXPECT_GE(testing::expect_cancellable(search), 8) << inputs;
    EXPECT_EQ(search().index, before.index);
  }
}

TEST(Cancel, LowRankFactors) {
  const World w;
  EXPECT_GE(testing::expect_cancellable([&] { pivoted_cholesky(*w.k, {.rank = 50}); }), 50);
  EXPECT_GE(testing::expect_cancellable([&] { rpcholesky(*w.k, {.rank = 50}); }), 10);
}

TEST(Cancel, AFactorThatGrowsGoesOnAfterwards) {
  const World w;
  RpCholesky factor(*w.k, {.rank = 60, .seed = 4});
  factor.grow(20);
  for (int stop_at = 1; stop_at < 40; stop_at += 3) {
    int asked = 0;
    const StopScope scope([&] { return ++asked >= stop_at; }, 0);
    try {
      factor.grow(10);
    } catch (const Interrupted&) {
    }
    ASSERT_EQ(static_cast<Index>(factor.pivots().size()), factor.rank());
  }
  factor.grow(10);
  // The diagonal of K - F F' is what is left, to the rounding of sums of at most 450 squares of at
  // most 1.
  const Vector left = Vector::Ones(kPoints) - factor.factor().rowwise().squaredNorm();
  EXPECT_LE((left - factor.residual()).cwiseAbs().maxCoeff(), 450 * 1e-15 + 1e-12);
}

TEST(Cancel, Landmarks) {
  const World w;
  for (const auto choice : {Landmarks::kmeans, Landmarks::leverage})
    EXPECT_GE(testing::expect_cancellable(
                  [&] { choose_landmarks(*w.k, {.count = 40, .choice = choice, .pilot = 50}); }),
              8)
        << to_string(choice);
}

TEST(Cancel, Clusters) {
  const World w;
  const auto before = clusters(w.kernel, w.x, 32);
  EXPECT_GE(testing::expect_cancellable([&] { clusters(w.kernel, w.x, 32); }), 63);
  EXPECT_EQ(clusters(w.kernel, w.x, 32).order, before.order);
}

}  // namespace cancel_test
}  // namespace mercer::approximations
