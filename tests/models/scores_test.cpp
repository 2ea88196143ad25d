#include "mercer/models/scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "mercer/core/rng.hpp"

namespace mercer::models {
namespace scores_test {

TEST(Scores, HandComputed) {
  ScoreKeeper keeper;
  keeper.add(Eigen::Vector2d(1, 3), Eigen::Vector2d(0, 3), Eigen::Vector2d(1, 2));
  const auto s = keeper.scores();
  EXPECT_EQ(s.n, 2);
  EXPECT_DOUBLE_EQ(s.rmse, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(s.mae, 0.5);
  EXPECT_DOUBLE_EQ(s.smse.value(), 0.5);  // mse 0.5, variance of {1, 3} is 1
  const double constant = 0.5 * std::log(2 * std::numbers::pi);
  EXPECT_NEAR(s.nll, constant + (0.5 + std::log(2.0)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(s.coverage90, 1.0);
}

// The closed form of the CRPS against its definition, the integral of (F(t) - 1{t >= y})^2.
TEST(Scores, CrpsIsTheIntegral) {
  const double y = 0.7;
  const double mean = -0.2;
  const double sd = 1.3;
  double integral = 0;
  const double step = 1e-4;
  for (double t = -15; t < 15; t += step) {
    const double cdf = 0.5 * std::erfc(-(t + step / 2 - mean) / sd / std::numbers::sqrt2);
    integral += step * std::pow(cdf - (t + step / 2 >= y ? 1.0 : 0.0), 2);
  }
  ScoreKeeper keeper;
  keeper.add(Vector::Constant(1, y), Vector::Constant(1, mean), Vector::Constant(1, sd));
  EXPECT_NEAR(keeper.scores().crps, integral, 1e-4);  // midpoint rule over one jump
}

TEST(Scores, CoverageOfTheTruthIsNominal) {
  Rng rng(1, "coverage");
  Vector y(20000);
  rng.fill_normal(y);
  ScoreKeeper keeper;
  keeper.add(y, Vector::Zero(y.size()), Vector::Ones(y.size()));
  // Binomial standard deviation 0.0021 and 0.0015; 4 of them (false alarm 6e-5).
  EXPECT_NEAR(keeper.scores().coverage90, 0.90, 0.0085);
  EXPECT_NEAR(keeper.scores().coverage95, 0.95, 0.0062);
}

TEST(Scores, ATargetThatDoesNotVaryHasNoStandardisedError) {
  ScoreKeeper one;
  one.add(Vector::Constant(1, 3), Vector::Constant(1, 2), Vector::Ones(1));
  EXPECT_FALSE(one.scores().smse.has_value());
  EXPECT_DOUBLE_EQ(one.scores().rmse, 1);
  ScoreKeeper constant;
  constant.add(Vector::Constant(5, 0.1), Vector::Zero(5), Vector::Ones(5));
  EXPECT_FALSE(constant.scores().smse.has_value());
}

}  // namespace scores_test
}  // namespace mercer::models
