#include "mercer/models/full_training.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/optim/lbfgs.hpp"

namespace mercer::models {
namespace {

struct Task {
  inference::Observations data;
  inference::Problem problem{
      kernels::Kernel::parse("matern32", 2), 0.3, inference::MeanKind::zero, {}};
  optim::Box box{Vector::Constant(4, -6.0), Vector::Constant(4, 6.0)};
};

Task make_task(Index n) {
  Task t{{Matrix(n, 2), Vector(n)}};
  Rng rng(21, "full training");
  rng.fill_normal(t.data.x);
  for (Index i = 0; i < n; ++i)
    t.data.y(i) = std::sin(2 * t.data.x(i, 0)) + 0.4 * t.data.x(i, 1) + 0.2 * rng.normal();
  return t;
}

FullTrainingOptions options_for(const std::string& method) {
  FullTrainingOptions o;
  o.method = method;
  o.neighbours = 15;
  o.estimator.system.solver = "cg";
  o.estimator.system.preconditioner = "auto";
  return o;
}

double exact_optimum(const Task& t) {
  auto problem = t.problem;
  const auto result = optim::lbfgs(
      [&](ConstVectorView theta, VectorView gradient) {
        problem.set_log_parameters(theta);
        const auto e = inference::exact_evidence(problem, t.data, true);
        gradient = -e.gradient;
        return -e.value;
      },
      problem.log_parameters(), t.box);
  return -result.value;
}

// How much log likelihood a method may leave: probes and the end of Adam and AdaGrad cost a few
// units, the surrogate alone (15 neighbours) its bias.
double allowance(const std::string& method) {
  if (method == "lbfgs") return 1;
  return method == "vecchia" ? 6 : 5;
}

class FullTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(FullTraining, ReachesTheExactOptimum) {
  const auto t = make_task(500);
  const auto learned = learn_by_solves(t.problem, t.data, t.box, options_for(GetParam()), {}, {});
  const double reached = inference::exact_evidence(learned.problem, t.data, false).value;
  EXPECT_GT(reached, exact_optimum(t) - allowance(GetParam()));
  if (std::string(GetParam()) == "lbfgs") {
    EXPECT_EQ(learned.stop, StopReason::converged);
  }
}

TEST_P(FullTraining, ResumesToTheSameBits) {
  if (std::string(GetParam()) == "vecchia") GTEST_SKIP() << "takes no exact gradient";
  const auto t = make_task(200);
  auto options = options_for(GetParam());
  options.estimator.kind = inference::Probes::rademacher;  // noisy: Adam and AdaGrad end by it
  options.steps = 300;
  std::vector<FullState> states;
  FullTrainingHooks hooks;
  hooks.after_step = [&](const FullState& state) { states.push_back(state); };
  const auto whole = learn_by_solves(t.problem, t.data, t.box, options, {}, hooks);
  ASSERT_GE(states.size(), 2u);
  EXPECT_EQ(whole.stop, StopReason::converged);
  // From the middle, from just before the end, and from the end itself, which takes no gradient.
  for (const std::size_t at : {states.size() / 2, states.size() - 2, states.size() - 1}) {
    const auto resumed = learn_by_solves(t.problem, t.data, t.box, options, states[at], {});
    EXPECT_EQ(resumed.problem.log_parameters(), whole.problem.log_parameters()) << at;
    EXPECT_EQ(resumed.stop, whole.stop);
    EXPECT_EQ(resumed.steps.size(), states.size() - 1 - at);
    EXPECT_EQ(resumed.resumed_steps, static_cast<int>(at) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, FullTraining,
                         ::testing::Values("lbfgs", "adam", "adagrad", "vecchia"));

TEST(FullTraining, StoppedAnywhereItKeepsWhatItHasAndGoesOnToTheSameBits) {
  const auto t = make_task(100);
  const auto whole = learn_by_solves(t.problem, t.data, t.box, options_for("lbfgs"), {}, {});
  for (const int after : {3, 25, 45, 60}) {
    FullTrainingHooks hooks;
    int calls = 0;
    FullState kept;
    hooks.progress = [&](const Progress& p) {
      EXPECT_TRUE(p.ends_stage);
      return ++calls > after ? Action::stop : Action::proceed;
    };
    hooks.after_step = [&](const FullState& state) { kept = state; };
    const auto part = learn_by_solves(t.problem, t.data, t.box, options_for("lbfgs"), {}, hooks);
    EXPECT_TRUE(part.problem.log_parameters().allFinite());
    if (calls > after) {
      EXPECT_EQ(part.stop, StopReason::interrupted) << after;
    }
    const auto rest = learn_by_solves(t.problem, t.data, t.box, options_for("lbfgs"), kept, {});
    EXPECT_EQ(rest.problem.log_parameters(), whole.problem.log_parameters()) << after;
  }
}

TEST(FullTraining, SolvesThatMissTheirToleranceAreCountedAndNothingIsCalledConverged) {
  const auto t = make_task(200);
  auto options = options_for("lbfgs");
  options.estimator.system.preconditioner = "none";
  options.estimator.system.max_iterations = 1;
  options.steps = 2;
  const auto learned = learn_by_solves(t.problem, t.data, t.box, options, {}, {});
  EXPECT_EQ(learned.loose_gradients, static_cast<int>(learned.steps.size()));
  EXPECT_NE(learned.stop, StopReason::converged);
}

}  // namespace
}  // namespace mercer::models
