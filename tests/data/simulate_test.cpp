#include "mercer/data/simulate.hpp"

#include <cmath>
#include <set>

#include "tests/data/files.hpp"

namespace mercer::data {
namespace simulate_test {

using testing::message_of;

TEST(SimulatedRows, ArePiecesOfTheWhole) {
  const auto whole = friedman(1000, {.dimension = 6, .noise_sd = 0.7, .seed = 4});
  for (const Index most : {1000, 333, 64}) {
    auto rows = friedman_rows(1000, {.dimension = 6, .noise_sd = 0.7, .seed = 4});
    Index done = 0;
    for (Simulated piece; rows.next(piece, most); done += piece.target.size()) {
      EXPECT_EQ(piece.inputs, whole.inputs.middleRows(done, piece.target.size()));
      EXPECT_EQ(piece.target, whole.target.segment(done, piece.target.size()));
    }
    EXPECT_EQ(done, 1000);
  }
  // The points are those of one draw of all, as before there were pieces.
  Rng rng(4, "simulate-points");
  EXPECT_EQ(whole.inputs, uniform_points(1000, 6, rng));
}

TEST(Simulate, PointsHaveTheMomentsOfTheirDistribution) {
  Rng rng(4);
  const Matrix u = uniform_points(20000, 2, rng);
  EXPECT_GT(u.minCoeff(), 0);
  EXPECT_LT(u.maxCoeff(), 1);
  EXPECT_NEAR(u.mean(), 0.5, 5 * std::sqrt(1.0 / 12 / 40000));  // five standard errors
  const Matrix z = normal_points(20000, 2, rng);
  EXPECT_NEAR(z.mean(), 0, 5 / std::sqrt(40000.0));
  EXPECT_NEAR(z.squaredNorm() / 40000, 1, 5 * std::sqrt(2.0 / 40000));
  message_of<InvalidArgument>([&] { uniform_points(0, 2, rng); });
}

TEST(Simulate, FriedmanKnownValueNoiseAndIrrelevantInputs) {
  // sin(pi/4) * 10 + 20 * 0.25^2 + 10 * 0.1 + 5 * 0.2, by hand.
  EXPECT_NEAR(friedman_function(Vector{{0.5, 0.5, 0.75, 0.1, 0.2}}),
              7.0710678118654755 + 1.25 + 1 + 1, 1e-14);
  const auto data = friedman(20000, {.noise_sd = 0.5, .seed = 3});
  EXPECT_EQ(data.inputs.cols(), 10);
  EXPECT_EQ(data.names.back(), "x10");
  const Vector noise = data.target - data.truth;
  EXPECT_NEAR(noise.mean(), 0, 5 * 0.5 / std::sqrt(20000.0));
  EXPECT_NEAR(std::sqrt(noise.squaredNorm() / 20000), 0.5, 5 * 0.5 / std::sqrt(40000.0));
  EXPECT_NEAR(data.truth.mean(), 14.4, 0.3);  // the known mean of the function
  EXPECT_EQ(friedman(50, {.noise_sd = 0, .seed = 3}).truth,
            friedman(50, {.noise_sd = 0, .seed = 3}).target);
  EXPECT_EQ(friedman(50, {.seed = 3}).target, friedman(50, {.seed = 3}).target);
  EXPECT_NE(friedman(50, {.seed = 3}).target, friedman(50, {.seed = 4}).target);
  message_of<InvalidArgument>([] { friedman(10, {.dimension = 4}); });
  message_of<InvalidArgument>([] { friedman(10, {.noise_sd = -1}); });
}

TEST(Simulate, ScatteredFieldIsFrankesFunction) {
  // At (2/9, 2/9): 3/4 + 3/4 exp(-9/49 - 3/10) + 1/2 exp(-26/4) - 1/5 exp(-29).
  const double expected =
      0.75 + 0.75 * std::exp(-9.0 / 49 - 0.3) + 0.5 * std::exp(-6.5) - 0.2 * std::exp(-29.0);
  EXPECT_NEAR(franke_function(2.0 / 9, 2.0 / 9), expected, 1e-15);
  const auto data = scattered_field(100, 0, 1);
  for (Index i = 0; i < 100; ++i)
    EXPECT_EQ(data.target[i], franke_function(data.inputs(i, 0), data.inputs(i, 1)));
  message_of<InvalidArgument>([] { scattered_field(10, std::nan(""), 1); });
}

TEST(Simulate, GridWithHolesIsAGridInTwoParts) {
  const GridOptions options = {
      .rows = 40, .columns = 30, .missing_fraction = 0.2, .holes = 1, .seed = 9};
  const auto design = grid_with_holes(options);
  std::set<Index> cells(design.observed_cells.begin(), design.observed_cells.end());
  cells.insert(design.missing_cells.begin(), design.missing_cells.end());
  EXPECT_EQ(cells.size(), 1200U);
  EXPECT_EQ(design.observed_cells.size() + design.missing_cells.size(), 1200U);
  for (Index i = 0; i < design.observed.rows(); ++i) {
    const Index cell = design.observed_cells[static_cast<std::size_t>(i)];
    EXPECT_DOUBLE_EQ(design.observed(i, 0), static_cast<double>(cell % 30) / 29);
    EXPECT_DOUBLE_EQ(design.observed(i, 1), static_cast<double>(cell / 30) / 39);
  }
  // A hole is at least 4 x 3 cells and at most a third by a third: a fifth lost, 1 to 12 % holes.
  const double missing = static_cast<double>(design.missing.rows()) / 1200;
  EXPECT_GT(missing, 0.15);
  EXPECT_LT(missing, 0.37);
  EXPECT_EQ(grid_with_holes({.missing_fraction = 0, .holes = 0}).observed.rows(), 2500);
  EXPECT_EQ(grid_with_holes(options).observed, design.observed);
  EXPECT_EQ(grid_field(options, 0.1).inputs, design.observed);
  message_of<InvalidArgument>([] { grid_with_holes({.missing_fraction = 1}); });
  message_of<InvalidArgument>([] { grid_with_holes({.rows = 0}); });
  message_of<InvalidArgument>([] { grid_with_holes({.rows = 1, .columns = 1, .holes = 1}); });
}

}  // namespace simulate_test
}  // namespace mercer::data
