#include "mercer/optim/lbfgs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "mercer/core/error.hpp"

namespace mercer::optim {
namespace lbfgs_test {

double rosenbrock(ConstVectorView x, VectorView g) {
  const double a = 1 - x(0), b = x(1) - x(0) * x(0);
  g(0) = -2 * a - 400 * b * x(0);
  g(1) = 200 * b;
  return a * a + 100 * b * b;
}

/// sum_i (i + 1) (x_i - i)^2 - 100: the value at the minimum is negative on purpose.
double quadratic(ConstVectorView x, VectorView g) {
  double value = -100;
  for (Index i = 0; i < x.size(); ++i) {
    const double weight = static_cast<double>(i + 1), d = x(i) - static_cast<double>(i);
    value += weight * d * d;
    g(i) = 2 * weight * d;
  }
  return value;
}

Vector vector(std::initializer_list<double> values) {
  Vector v(static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), v.data());
  return v;
}

TEST(Lbfgs, FindsTheEndOfRosenbrocksValley) {
  int calls = 0;
  const auto result = lbfgs(rosenbrock, vector({-1.2, 1}), {}, {.gradient_tolerance = 1e-8},
                            [&](const Iteration& it) {
                              EXPECT_EQ(it.number, ++calls);
                              return Action::proceed;
                            });
  EXPECT_TRUE(result.converged());
  EXPECT_LE((result.theta - Vector::Ones(2)).norm(), 1e-6);
  EXPECT_LE(result.gradient.norm(), 1e-7);
  EXPECT_EQ(result.iterations, calls);
  EXPECT_EQ(result.history.rows(), calls);
  EXPECT_GE(result.evaluations, result.iterations);
  EXPECT_EQ(result.bounds_hit, (std::vector<int>{0, 0}));
}

TEST(Lbfgs, NegativeValuesAreNoReasonToStop) {
  const auto result = lbfgs(quadratic, Vector::Constant(6, 9.0));
  EXPECT_TRUE(result.converged());
  for (Index i = 0; i < 6; ++i) EXPECT_NEAR(result.theta(i), double(i), 1e-5);
}

TEST(Lbfgs, AKnownHessianMakesTheFirstStepNewtons) {
  LbfgsOptions options;
  options.hessian = Matrix::Zero(6, 6);
  for (Index i = 0; i < 6; ++i) options.hessian(i, i) = 2.0 * static_cast<double>(i + 1);
  options.gain_tolerance = 1e-12;
  const Vector start = Vector::LinSpaced(6, 0.3, 5.1);  // less than the longest step away
  const auto result = lbfgs(quadratic, start, {}, options);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.iterations, 1);
  EXPECT_EQ(result.evaluations, 2);
  for (Index i = 0; i < 6; ++i) EXPECT_NEAR(result.theta(i), double(i), 1e-8);
  // At the minimum there is nothing to do but to say so.
  const auto again = lbfgs(quadratic, result.theta, {}, options);
  EXPECT_TRUE(again.converged());
  EXPECT_EQ(again.evaluations, 1);
}

TEST(Lbfgs, EndsWhereLittleIsLeftToGain) {
  // log(1 + e^x) - x / 4 in each of six directions of different width: convex, not quadratic.
  const Vector width = Vector::LinSpaced(6, 0.3, 3);
  const auto f = [&](ConstVectorView x, VectorView g) {
    double value = 0;
    for (Index i = 0; i < x.size(); ++i) {
      const double t = x(i) / width(i);
      value += std::log1p(std::exp(t)) - t / 4;
      g(i) = (1 / (1 + std::exp(-t)) - 0.25) / width(i);
    }
    return value;
  };
  const double least = 6 * (std::log(4.0 / 3) - std::log(1.0 / 3) / 4);
  const LbfgsOptions exact{.gradient_tolerance = 1e-9, .value_tolerance = 0};
  LbfgsOptions options = exact;
  options.gain_tolerance = 1e-4;
  const auto all = lbfgs(f, Vector::Constant(6, 2.0), {}, exact);
  EXPECT_NEAR(all.value, least, 1e-12);
  const auto early = lbfgs(f, Vector::Constant(6, 2.0), {}, options);
  EXPECT_TRUE(early.converged());
  EXPECT_LT(early.evaluations, all.evaluations);
  EXPECT_LE(early.value, least + 2 * options.gain_tolerance);
  // The Hessian at the minimum is exact there: what it promises to third order is what is left.
  options.hessian = (3.0 / 16 * width.cwiseAbs2().cwiseInverse()).asDiagonal();
  const auto newton = lbfgs(f, Vector::Constant(6, 0.1), {}, options);
  EXPECT_TRUE(newton.converged());
  EXPECT_LE(newton.value, least + 1.1 * options.gain_tolerance);
}

TEST(Lbfgs, AWrongHessianOnlyCostsSteps) {
  for (const double sign : {-1.0, 0.0, 100.0}) {
    LbfgsOptions options;
    options.hessian = sign * Matrix::Identity(2, 2);
    options.hessian(0, 1) = options.hessian(1, 0) = 0.3;
    options.gain_tolerance = 1e-14;
    options.value_tolerance = 0;
    const auto result = lbfgs(rosenbrock, vector({-1.2, 1}), {}, options);
    EXPECT_LE((result.theta - Vector::Ones(2)).norm(), 1e-4) << sign;
  }
}

// x^2 / 2 + 50 (y - x^2)^2 from (-1, 1), where the slope along y is zero, with a Hessian that is
// flat along y.
LbfgsOptions flat_hessian() {
  LbfgsOptions options;
  options.hessian = vector({1, 1e-6}).asDiagonal();
  options.gain_tolerance = 1e-12;
  return options;
}
double valley(ConstVectorView x, VectorView g) {
  const double off = x(1) - x(0) * x(0);
  g(0) = x(0) - 200 * off * x(0);
  g(1) = 100 * off;
  return 0.5 * x(0) * x(0) + 50 * off * off;
}

TEST(Lbfgs, ALeastCurvatureSavesTrialsOfAFlatHessian) {
  const Vector start = vector({-1, 1});
  auto options = flat_hessian();
  const auto without = lbfgs(valley, start, {}, options);
  options.least_curvature = 1;
  const auto with = lbfgs(valley, start, {}, options);
  EXPECT_NEAR(with.value, 0, 1e-10);
  EXPECT_LT(with.evaluations, without.evaluations - 5);
}

TEST(Lbfgs, FirstTrialsOfLaterStepsAreNoLongerThanTheLimit) {
  constexpr double limit = 0.1;
  for (const bool scaled : {false, true}) {
    auto options = scaled ? flat_hessian() : LbfgsOptions{};
    options.longest_step = limit;
    Vector here;
    double lowest = HUGE_VAL;
    int steps = 0;
    bool begins = false;
    const auto watched = [&](ConstVectorView x, VectorView g) {
      const double value = valley(x, g);
      if (std::exchange(begins, false)) {
        EXPECT_LE((x - here).cwiseAbs().maxCoeff(), limit + 1e-9);
      }
      if (value < lowest) here = x;
      lowest = std::min(lowest, value);
      return value;
    };
    const auto observer = [&](const Iteration& it) {
      begins = it.value == lowest;
      ++steps;
      return Action::proceed;
    };
    const auto result = lbfgs(watched, vector({-1, 1}), {}, options, observer);
    EXPECT_NEAR(result.value, 0, 1e-8) << scaled;
    EXPECT_GT(steps, 5);
  }
}

TEST(Lbfgs, AHessianIsCarriedIntoBounds) {
  // The minimum of x_1 is outside.
  const Box box(vector({-1, -1}), vector({1, 0.5}));
  LbfgsOptions options;
  options.hessian = vector({2, 4}).asDiagonal();
  options.gain_tolerance = 1e-12;
  const auto result = lbfgs(quadratic, vector({0.2, 0.4}), box, options);
  EXPECT_TRUE(result.converged());
  EXPECT_NEAR(result.theta(0), 0, 1e-4);
  EXPECT_NEAR(result.theta(1), 0.5, 1e-4);
  EXPECT_EQ(result.bounds_hit, (std::vector<int>{0, 1}));
}

TEST(Lbfgs, AHessianOfTheWrongSizeIsRefused) {
  LbfgsOptions options;
  options.hessian = Matrix::Identity(3, 3);
  EXPECT_THROW(lbfgs(rosenbrock, vector({-1.2, 1}), {}, options), DimensionMismatch);
  options.hessian = Matrix::Constant(2, 2, NAN);
  EXPECT_THROW(lbfgs(rosenbrock, vector({-1.2, 1}), {}, options), InvalidArgument);
}

TEST(Lbfgs, StopsAtTheBoundAndSaysWhichOne) {
  // Without bounds the minimum is (0, 1, 2); the box cuts off the first and the last.
  const Box box(vector({0.5, -5, -5}), vector({5, 5, 1.5}));
  const auto result = lbfgs(
      [&](ConstVectorView x, VectorView g) {
        EXPECT_TRUE((x.array() >= box.lower().array()).all());
        EXPECT_TRUE((x.array() <= box.upper().array()).all());
        return quadratic(x, g);
      },
      vector({3, 3, 0}), box, {.value_tolerance = 0});
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(result.bounds_hit, (std::vector<int>{-1, 0, 1}));
  EXPECT_NEAR(result.theta(0), 0.5, 1e-3 * 4.5);
  EXPECT_NEAR(result.theta(1), 1.0, 1e-4);
  EXPECT_NEAR(result.theta(2), 1.5, 1e-3 * 6.5);
}

TEST(Lbfgs, AStartOnTheBoundIsMovedInsideAndReported) {
  const Box box(vector({-2, -2}), vector({3, 3}));
  const auto result = lbfgs(quadratic, vector({3, -7}), box);
  EXPECT_TRUE(result.start_moved);
  EXPECT_TRUE(result.converged());
  EXPECT_NEAR(result.theta(1), 1.0, 1e-4);
}

TEST(Lbfgs, AFixedParameterStays) {
  const Box box(vector({-2, 2.25}), vector({3, 2.25}));
  const auto result = lbfgs(quadratic, vector({1, 2.25}), box);
  EXPECT_EQ(result.theta(1), 2.25);
  EXPECT_NEAR(result.theta(0), 0.0, 1e-4);
}

TEST(Lbfgs, BacksOffFromWhereThereIsNoValue) {
  // Beyond x0 = 0.9 the function is NaN, inf or not positive definite: three ways of saying no.
  for (const int way : {0, 1, 2}) {
    int refused = 0;
    const auto f = [&](ConstVectorView x, VectorView g) {
      if (x(0) <= 0.9) return (x(0) - 0.8) * (x(0) - 0.8) * (g(0) = 2 * (x(0) - 0.8), 1.0);
      ++refused;
      g(0) = std::numeric_limits<double>::quiet_NaN();
      if (way == 2) throw NotPositiveDefinite("not positive definite", 0);
      return way == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : -std::numeric_limits<double>::infinity();
    };
    const auto result = lbfgs(f, vector({-40}));
    EXPECT_TRUE(result.converged()) << way << " " << result.message;
    EXPECT_NEAR(result.theta(0), 0.8, 1e-5);
    EXPECT_EQ(result.rejected_evaluations, refused);
  }
}

TEST(Lbfgs, AStartWithoutValueIsABreakdown) {
  const auto result = lbfgs(
      [](ConstVectorView, VectorView) -> double { throw NotPositiveDefinite("no factor", 3); },
      vector({1, 2}));
  EXPECT_EQ(result.stop, StopReason::breakdown);
  EXPECT_NE(result.message.find("no factor"), std::string::npos);
  EXPECT_EQ(result.rejected_evaluations, 1);
}

TEST(Lbfgs, OtherErrorsComeThrough) {
  int calls = 0;
  const auto f = [&](ConstVectorView x, VectorView g) {
    if (++calls == 4) throw IoError("disk full");
    return rosenbrock(x, g);
  };
  EXPECT_THROW(lbfgs(f, vector({-1.2, 1})), IoError);
  EXPECT_EQ(calls, 4);
  EXPECT_THROW(lbfgs(rosenbrock, vector({-1.2, 1}), {}, {},
                     [](const Iteration&) -> Action { throw std::logic_error("observer"); }),
               std::logic_error);
}

TEST(Lbfgs, ObserverAndLimitEndIt) {
  const auto stopped = lbfgs(rosenbrock, vector({-1.2, 1}), {}, {}, [](const Iteration& it) {
    return it.number == 3 ? Action::stop : Action::proceed;
  });
  EXPECT_EQ(stopped.stop, StopReason::interrupted);
  EXPECT_EQ(stopped.iterations, 3);
  const auto limited = lbfgs(rosenbrock, vector({-1.2, 1}), {}, {.max_iterations = 5});
  EXPECT_EQ(limited.stop, StopReason::iteration_limit);
  EXPECT_EQ(limited.iterations, 5);
  EXPECT_LT(limited.value, 24.2);  // the start's value
}

TEST(Lbfgs, AWrongGradientIsStagnationNotALie) {
  const auto uphill = [](ConstVectorView x, VectorView g) {
    g(0) = -2 * x(0);  // the sign is wrong
    return x(0) * x(0);
  };
  const auto result = lbfgs(uphill, vector({1}));
  EXPECT_FALSE(result.converged());
  EXPECT_EQ(result.stop, StopReason::stagnation);
  EXPECT_EQ(result.theta(0), 1.0);
}

TEST(Lbfgs, RefusesWhatItCannotStartFrom) {
  EXPECT_THROW(lbfgs(quadratic, Vector()), InvalidArgument);
  EXPECT_THROW(lbfgs(quadratic, vector({NAN})), InvalidArgument);
  EXPECT_THROW(lbfgs(quadratic, vector({1}), Box(Vector::Zero(2), Vector::Ones(2))),
               DimensionMismatch);
}

}  // namespace lbfgs_test
}  // namespace mercer::optim
