#include "mercer/optim/quasi_newton.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::optim {
namespace quasi_newton_test {

// The gradient of sum_i w_i (cosh(x_i - i) - 1), w_i = i + 1, with couplings; its minimum is at i.
Vector slope(ConstVectorView x) {
  Vector g(x.size());
  for (Index i = 0; i < x.size(); ++i)
    g(i) = static_cast<double>(i + 1) * std::sinh(x(i) - static_cast<double>(i));
  for (Index i = 0; i + 1 < x.size(); ++i) {
    const double d = (x(i) - static_cast<double>(i)) - (x(i + 1) - static_cast<double>(i + 1));
    g(i) += 0.5 * d;
    g(i + 1) -= 0.5 * d;
  }
  return g;
}

NoisyGradient exactly(ConstVectorView x, int /*step*/) { return {slope(x), Vector()}; }

Vector minimum(Index n) { return Vector::LinSpaced(n, 0, static_cast<double>(n - 1)); }

TEST(QuasiNewton, ARoughHessianIsEnoughForFewSteps) {
  const Vector start = minimum(4).array() + 0.8;
  Matrix rough = Matrix::Identity(4, 4);
  for (Index i = 0; i < 4; ++i) rough(i, i) = 0.6 * static_cast<double>(i + 1);
  const auto result = quasi_newton(exactly, start, rough, {}, {.gain_tolerance = 1e-8});
  EXPECT_EQ(result.stop, StopReason::converged);
  EXPECT_LE(result.steps, 12);
  EXPECT_LE(result.gain, 1e-8);
  EXPECT_LT((result.theta - minimum(4)).norm(), 1e-3);
}

// What another search may begin with: the step that follows and the Hessian, which has the slope
// that was seen along the last move (the secant equation).
TEST(QuasiNewton, HandsOnTheNextStepAndTheHessian) {
  const Vector start = minimum(3).array() + 0.3;
  const auto result = quasi_newton(exactly, start, Matrix::Identity(3, 3), {}, {.steps = 2});
  ASSERT_EQ(result.steps, 2);
  const Vector s = result.theta - start, y = slope(result.theta) - slope(start);
  EXPECT_LT((result.hessian * s - y).norm(), 1e-12 * y.norm() + 1e-14);
  EXPECT_LT((result.hessian * result.step + slope(result.theta)).norm(), 1e-12);
}

TEST(QuasiNewton, AHessianThatIsWrongByFarIsCorrected) {
  const Vector start = minimum(3).array() - 1.5;
  for (const double factor : {-1.0, 0.0, 0.02, 50.0}) {
    const auto result = quasi_newton(exactly, start, factor * Matrix::Identity(3, 3), {},
                                     {.steps = 60, .gain_tolerance = 1e-6});
    EXPECT_LT((result.theta - minimum(3)).norm(), 0.02) << factor;
  }
}

TEST(QuasiNewton, EndsWhereTheGradientIsNoise) {
  // Standard error 0.1 in each entry; the curvature is about 1: a gain of 0.005 each is noise.
  Rng rng(2, "noisy gradient");
  const NoisyObjective noisy = [&](ConstVectorView x, int) -> NoisyGradient {
    Vector g = slope(x);
    for (Index i = 0; i < g.size(); ++i) g(i) += 0.1 * rng.normal();
    return {g, Vector::Constant(g.size(), 0.1)};
  };
  const auto result = quasi_newton(noisy, Vector::Constant(1, 0.9), Matrix::Identity(1, 1), {}, {});
  EXPECT_EQ(result.stop, StopReason::converged);
  EXPECT_LE(result.gain, result.noise);
  EXPECT_LT(std::abs(result.theta(0)), 0.6);
}

TEST(QuasiNewton, AFlatDirectionFullOfNoiseDoesNotHideTheOthers) {
  // x_1 has no curvature to speak of, but a noisy slope; x_0 has 2 to gain.
  const NoisyObjective noisy = [](ConstVectorView x, int) -> NoisyGradient {
    return {Vector{{2 * x(0), 0.01 + 1e-3 * x(1)}}, Vector{{0.01, 0.5}}};
  };
  Matrix hessian = Matrix::Zero(2, 2);
  hessian(0, 0) = 2;
  hessian(1, 1) = 1e-3;
  const auto result = quasi_newton(noisy, Vector{{1.4, 0.0}}, hessian, {}, {});
  EXPECT_EQ(result.stop, StopReason::converged);
  EXPECT_GT(result.noise, 1);
  EXPECT_NEAR(result.theta(0), 0, 0.02);
}

// f = (x^2 - 4)^2 / 16 + y^2 / 2 from a place where it bends the wrong way: gradients grow at
// first.
TEST(QuasiNewton, LeavesAPlaceThatBendsTheWrongWay) {
  const NoisyObjective f = [](ConstVectorView x, int) -> NoisyGradient {
    return {Vector{{0.25 * x(0) * (x(0) * x(0) - 4), x(1)}}, Vector()};
  };
  for (const double bend : {-1.0, 0.3, 1.0, 5.0}) {
    Matrix hessian = Matrix::Identity(2, 2);
    hessian(0, 0) = bend;
    const auto result =
        quasi_newton(f, Vector{{0.05, 1.0}}, hessian, {}, {.steps = 60, .gain_tolerance = 1e-8});
    EXPECT_EQ(result.stop, StopReason::converged) << bend;
    EXPECT_NEAR(result.theta(0), 2, 1e-3) << bend;
    EXPECT_NEAR(result.theta(1), 0, 1e-3) << bend;
  }
}

TEST(QuasiNewton, StaysInsideTheBoxAndEndsAtItsEdge) {
  const Box box(Vector::Constant(3, -1.0), Vector::Constant(3, 1.5));  // the third wants 2
  const auto result = quasi_newton(exactly, Vector::Zero(3), 2 * Matrix::Identity(3, 3), box,
                                   {.steps = 40, .gain_tolerance = 1e-8});
  EXPECT_EQ(result.stop, StopReason::converged);
  EXPECT_NEAR(result.theta(2), 1.5, 3e-3);
  EXPECT_EQ(box.hit(2, result.theta(2)), 1);
  EXPECT_LT(result.theta(1), 1);  // pulled by its neighbour
}

TEST(QuasiNewton, StopsWhenAskedAndSaysSo) {
  const auto stopped = quasi_newton(exactly, Vector::Constant(2, 9.0), Matrix::Identity(2, 2), {},
                                    {}, [](const QuasiNewtonStep& step) {
                                      return step.number == 2 ? Action::stop : Action::proceed;
                                    });
  EXPECT_EQ(stopped.stop, StopReason::interrupted);
  EXPECT_EQ(stopped.steps, 2);
  const auto empty = quasi_newton([](ConstVectorView, int) { return NoisyGradient(); },
                                  Vector::Zero(2), Matrix::Identity(2, 2), {}, {});
  EXPECT_EQ(empty.stop, StopReason::interrupted);
  const auto limited =
      quasi_newton(exactly, Vector::Constant(2, 9.0), Matrix::Identity(2, 2), {}, {.steps = 2});
  EXPECT_EQ(limited.stop, StopReason::iteration_limit);
  const auto broken = quasi_newton(
      [](ConstVectorView, int) -> NoisyGradient {
        return {Vector::Constant(2, NAN), {}};
      },
      Vector::Zero(2), Matrix::Identity(2, 2), {}, {});
  EXPECT_EQ(broken.stop, StopReason::breakdown);
}

TEST(QuasiNewton, BadInputIsRefused) {
  EXPECT_THROW(quasi_newton(exactly, Vector(), Matrix(), {}, {}), InvalidArgument);
  EXPECT_THROW(quasi_newton(exactly, Vector::Zero(2), Matrix::Identity(3, 3), {}, {}),
               DimensionMismatch);
  EXPECT_THROW(quasi_newton(exactly, Vector::Zero(2), Matrix::Constant(2, 2, NAN), {}, {}),
               InvalidArgument);
}

}  // namespace quasi_newton_test
}  // namespace mercer::optim
