#include "mercer/models/log_normal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "mercer/models/fit.hpp"
#include "mercer/models/scores.hpp"

namespace mercer::models {
namespace log_normal_test {

// By the midpoint rule over z = (log y - mu) / sigma.
template <class F>
double average(const LogNormal& y, const F& value) {
  double sum = 0;
  constexpr double step = 1e-3;
  for (double z = -12 + step / 2; z < 12; z += step)
    sum += step * value(std::exp(y.mu + y.sigma * z)) * std::exp(-0.5 * z * z);
  return sum / std::sqrt(2 * std::numbers::pi);
}

TEST(LogNormal, MomentsAreThoseOfTheIntegral) {
  for (const LogNormal y : {LogNormal{0.3, 0.7}, LogNormal{-2, 0.01}, LogNormal{5, 1.5}}) {
    const double mean = average(y, [](double t) { return t; });
    const double square = average(y, [&](double t) { return std::pow(t - mean, 2); });
    // The rule is right to rounding for these smooth functions, which reach 1e-12 at the ends.
    EXPECT_NEAR(y.mean() / mean, 1, 1e-10);
    EXPECT_NEAR(y.sd() / std::sqrt(square), 1, 1e-9);
    const auto again = log_normal_of_ratio(y.mu, y.sd() / y.mean());
    EXPECT_NEAR(again.sigma / y.sigma, 1, 1e-12);
    EXPECT_DOUBLE_EQ(y.at(0), y.median());
    EXPECT_NEAR(y.z(y.at(1.3)), 1.3, 1e-12);
  }
}

TEST(LogNormal, TheDensityIntegratesToOne) {
  const LogNormal y{0.4, 0.6};
  double total = 0;
  constexpr double step = 1e-3;
  for (double t = step / 2; t < 200; t += step) total += step * std::exp(y.log_density(t));
  EXPECT_NEAR(total, 1, 1e-9);
}

// The integral of (F(t) - 1{t >= y})^2.
TEST(LogNormal, CrpsIsTheIntegral) {
  const LogNormal p{0.4, 0.6};
  for (const double y : {0.2, 1.5, 9.0}) {
    double integral = 0;
    constexpr double step = 1e-4;
    for (double t = step / 2; t < 60; t += step) {
      const double cdf = 0.5 * std::erfc(-p.z(t) / std::numbers::sqrt2);
      integral += step * std::pow(cdf - (t >= y ? 1.0 : 0.0), 2);
    }
    EXPECT_NEAR(p.crps(y), integral, 1e-4);  // midpoint rule over one jump
  }
}

TEST(LogNormal, TheErrorOfTheMeanIsBoundedOnBothSides) {
  const LogNormal y{2, 0.5};
  for (const double bound : {1e-12, 1e-3, 0.4})
    for (const double shift : {-bound, 0.3 * bound, bound})
      EXPECT_LE(std::abs(LogNormal{y.mu + shift, y.sigma}.mean() - y.mean()), y.mean_error(bound));
}

TEST(LogNormal, AModelOfArraysLearnsTheLogarithmToo) {
  Matrix x(30, 1);
  Vector y(30);
  for (Index i = 0; i < 30; ++i) {
    x(i, 0) = 0.1 * static_cast<double>(i);
    y(i) = std::exp(2 + std::sin(x(i, 0)) + 0.1 * static_cast<double>(i % 3));
  }
  FitOptions options;
  options.train.train = "none";
  auto data = data::make_dataset(x, y);
  data.schema.log_target = true;
  const Predictor ours(fit(data, options).model, {});
  const Predictor by_hand(fit(data::make_dataset(x, y.array().log()), options).model, {});
  const auto p = ours.predict(x), q = by_hand.predict(x);
  for (Index i = 0; i < 30; ++i)
    EXPECT_NEAR(p.mean(i), (LogNormal{q.mean(i), q.sd_obs(i)}.mean()), 1e-9 * p.mean(i));
  const Vector density = ours.log_density(p, y);
  const Vector log_density = by_hand.log_density(q, y.array().log());
  EXPECT_LE((density - log_density + Vector(y.array().log())).cwiseAbs().maxCoeff(), 1e-9);
  data.target(7) = 0;
  EXPECT_THROW(fit(data, options), DataError);
  EXPECT_THROW(ours.log_density(p, data.target), DataError);
}

}  // namespace log_normal_test
}  // namespace mercer::models
