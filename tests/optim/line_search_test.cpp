#include "mercer/optim/line_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace mercer::optim {
namespace line_search_test {

void expect_strong_wolfe(const LinePoint& start, const LinePoint& found) {
  const LineSearchOptions options;
  EXPECT_GT(found.step, 0);
  EXPECT_LE(found.value, start.value + options.decrease * found.step * start.slope);
  EXPECT_LE(std::abs(found.slope), options.flatness * std::abs(start.slope));
}

TEST(LineSearch, MeetsTheStrongWolfeConditionsFromAnyFirstStep) {
  // Three of the functions of More & Thuente (1994): a long flat tail, a narrow valley far away,
  // and one that oscillates.
  const auto rational = [](double t) -> LinePoint {
    const double b = 2, q = t * t + b;
    return {t, -t / q, (t * t - b) / (q * q)};
  };
  const auto quintic = [](double t) -> LinePoint {
    const double b = 0.004, u = t + b;
    return {t, std::pow(u, 5) - 2 * std::pow(u, 4), 5 * std::pow(u, 4) - 8 * std::pow(u, 3)};
  };
  const auto waves = [](double t) -> LinePoint {
    const double w = 20;
    return {t, (t - 1) * (t - 1) + 0.02 * std::sin(w * t), 2 * (t - 1) + 0.4 * std::cos(w * t)};
  };
  const std::vector<std::function<LinePoint(double)>> functions = {rational, quintic, waves};
  for (const double first : {1e-3, 1e-1, 1.0, 10.0, 1000.0}) {
    int trials = 0;
    for (const auto& f : functions) {
      const auto counted = [&](double t) {
        ++trials;
        return f(t);
      };
      expect_strong_wolfe(f(0), line_search(counted, f(0), first));
    }
    EXPECT_LE(trials, 3 * 15) << first;
  }
}

TEST(LineSearch, TakesTheFirstStepWhereThatWillDo) {
  int trials = 0;
  const auto f = [&](double t) -> LinePoint {
    ++trials;
    return {t, (t - 1.3) * (t - 1.3), 2 * (t - 1.3)};
  };
  EXPECT_EQ(line_search(f, {0, 1.69, -2.6}, 1).step, 1);
  EXPECT_EQ(trials, 1);
}

TEST(LineSearch, ComesBackFromWhereThereIsNoValue) {
  const auto f = [](double t) -> LinePoint {
    if (t > 0.02) return {t, std::numeric_limits<double>::infinity(), 0};
    return {t, -t - std::log(0.021 - t) * 1e-3, -1 + 1e-3 / (0.021 - t)};
  };
  expect_strong_wolfe(f(0), line_search(f, f(0), 1));
}

TEST(LineSearch, FindsNothingWhereTheSlopeIsWrong) {
  const auto f = [](double t) -> LinePoint { return {t, (1 + t) * (1 + t), -2 * (1 + t)}; };
  EXPECT_EQ(line_search(f, f(0), 1).step, 0);
}

}  // namespace line_search_test
}  // namespace mercer::optim
