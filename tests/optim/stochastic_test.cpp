#include "mercer/optim/stochastic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/rng.hpp"

namespace mercer::optim {
namespace stochastic_test {

// f = sum c_i (theta_i - 1)^2 / 2 with noise of this size in its gradient.
NoisyObjective bowl(double noise) {
  return [noise](ConstVectorView theta, int step) {
    Rng rng(5, "bowl", static_cast<std::uint64_t>(step));
    NoisyGradient g;
    g.gradient.resize(theta.size());
    for (Index i = 0; i < theta.size(); ++i)
      g.gradient(i) =
          std::pow(10.0, static_cast<double>(i)) * (theta(i) - 1) + noise * rng.normal();
    g.standard_error = Vector::Constant(theta.size(), noise);
    return g;
  };
}

StochasticState at(Vector theta) {
  StochasticState s;
  s.theta = std::move(theta);
  return s;
}

TEST(Stochastic, AdaGradTakesTheStepsOfThePaper) {
  StochasticOptions options;
  options.rule = StepRule::adagrad;
  options.rate = 1;
  options.steps = 2;
  const auto result = descend(bowl(0), at(Vector::Constant(1, 3.0)), {}, options);
  // g1 = 2: step 2/(2 + 1e-6); then g2 = theta1 - 1 and a step g2 / (sqrt(4 + g2^2) + 1e-6).
  const double theta1 = 3 - 2 / (2 + 1e-6), g2 = theta1 - 1;
  EXPECT_NEAR(result.theta(0), theta1 - g2 / (std::sqrt(4 + g2 * g2) + 1e-6), 1e-14);
}

TEST(Stochastic, AdamsFirstStepIsTheRateInEveryParameter) {
  StochasticOptions options;
  options.steps = 1;
  options.cooling = 0;
  const auto result = descend(bowl(0), at(Vector::Constant(3, 5.0)), {}, options);
  for (Index i = 0; i < 3; ++i) EXPECT_NEAR(result.theta(i), 4.9, 1e-6);
}

TEST(Stochastic, BothEndNearTheMinimumAndSayWhy) {
  for (const auto rule : {StepRule::adam, StepRule::adagrad}) {
    StochasticOptions options;
    options.rule = rule;
    options.rate = rule == StepRule::adam ? 0.1 : 1.0;
    options.steps = 500;
    const auto result = descend(bowl(0.1), at(Vector::Constant(2, 3.0)), {}, options);
    EXPECT_EQ(result.stop, StopReason::converged);
    EXPECT_LT(result.steps, 500);
    EXPECT_NEAR(result.theta(0), 1, 0.3);
    EXPECT_NEAR(result.theta(1), 1, 0.1);
  }
}

TEST(Stochastic, FarFromTheMinimumItDoesNotClaimToBeThere) {
  StochasticOptions options;
  options.steps = 15;
  options.rate = 0.01;
  const auto result = descend(bowl(0.01), at(Vector::Constant(2, 3.0)), {}, options);
  EXPECT_EQ(result.stop, StopReason::iteration_limit);
}

TEST(Stochastic, StaysInsideTheBox) {
  StochasticOptions options;
  options.steps = 100;
  const Box box(Vector::Constant(1, 2.0), Vector::Constant(1, 4.0));
  const auto result = descend(bowl(0), at(Vector::Constant(1, 3.0)), box, options);
  EXPECT_GE(result.theta(0), 2.0);
  EXPECT_EQ(box.hit(0, result.theta(0)), -1);
}

TEST(Stochastic, ResumesToTheSameBits) {
  StochasticOptions options;
  options.steps = 40;
  const auto whole = descend(bowl(0.5), at(Vector::Constant(2, 3.0)), {}, options);
  StochasticState kept;
  const auto half =
      descend(bowl(0.5), at(Vector::Constant(2, 3.0)), {}, options, [&](const StochasticState& s) {
        kept = s;
        return s.step == 13 ? Action::stop : Action::proceed;
      });
  ASSERT_EQ(half.stop, StopReason::interrupted);
  EXPECT_EQ(descend(bowl(0.5), kept, {}, options).theta, whole.theta);
}

}  // namespace stochastic_test
}  // namespace mercer::optim
