// Laws of every trainer of the registry, over Gaussian noise and a likelihood that is not.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/training/search.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/exact_reference.hpp"

namespace mercer::training {
namespace trainer_test {

struct Case {
  std::string trainer, likelihood;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& trainer : trainers())
    for (const char* likelihood : {"gaussian", "bernoulli-logit"}) {
      if (trainer.draws) continue;  // sampler_test.cpp
      const inference::Problem problem(kernels::Kernel::parse("matern32", 2),
                                       likelihoods::make(likelihood));
      if (trainer.refusal(problem).empty()) out.push_back({std::string(trainer.name), likelihood});
    }
  return out;
}

struct World {
  inference::Observations rows;
  inference::Problem start;
};

World make_world(const std::string& likelihood, Index n) {
  World w{{Matrix(n, 2), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse("matern32", 2), likelihoods::make(likelihood)}};
  Rng rng(21, "trainers");
  rng.fill_normal(w.rows.x);
  for (Index i = 0; i < n; ++i) {
    const double f = std::sin(2 * w.rows.x(i, 0)) + 0.4 * w.rows.x(i, 1);
    w.rows.y(i, 0) = w.start.gaussian() ? f + 0.2 * rng.normal()
                                        : (rng.uniform() < 1 / (1 + std::exp(-3 * f)) ? 1 : 0);
  }
  return w;
}

TrainingChoice choice_of(const Case& c, Index n) {
  TrainingChoice choice;
  choice.trainer = c.trainer;
  choice.rows = n;
  const auto& entry = trainers().find(c.trainer);
  if (!entry.by_solves)
    choice.levels = {n / 2, n};
  else if (!entry.from_start_values)
    choice.levels = {n / 2};
  if (entry.in_levels) choice.solve_levels = {2 * n / 3};
  choice.system.solver = "cg";
  choice.system.preconditioner = "auto";
  return choice;
}

// A run whose progress callback says stop at the call of this number; 0: never.
struct Session {
  TrainOptions options;
  ProgressCallback progress;
  StepObserver on_step;
  int calls = 0;

  explicit Session(const std::string& checkpoint = "", int stop_at = 0) {
    options.checkpoint = checkpoint;
    options.restarts = 1;
    progress = [this, stop_at](const Progress&) {
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
  }
  Learned operator()(const World& w, const TrainingChoice& choice) {
    return train(w.start, w.rows, choice, {options, 4, 99, progress, on_step});
  }
};

double exact_value(const World& w, const inference::Problem& at) {
  return testing::exact_value(w.rows, at);
}

double exact_optimum(const World& w) { return testing::exact_optimum(w.start, w.rows, w.start); }

class TrainerLaw : public ::testing::TestWithParam<Case> {};

// How much log evidence a method may leave: the noise of eight probes costs Newton's steps and the
// end of Adam and AdaGrad a few units, the surrogate alone its bias.
TEST_P(TrainerLaw, ReachesTheExactOptimum) {
  const auto w = make_world(GetParam().likelihood, 300);
  const auto learned = Session()(w, choice_of(GetParam(), 300));
  const auto& entry = trainers().find(GetParam().trainer);
  const double allowance = GetParam().trainer == "vecchia"              ? 6
                           : entry.by_solves && entry.from_start_values ? 5
                           : GetParam().trainer == "newton"             ? 3
                                                                        : 1;
  EXPECT_GT(exact_value(w, learned.problem), exact_optimum(w) - allowance);
  EXPECT_EQ(entry.by_solves && !learned.report.gradient.allFinite(), false);
}

TEST_P(TrainerLaw, StoppedAnywhereItGoesOnToTheSameBits) {
  const auto w = make_world(GetParam().likelihood, 120);
  const auto choice = choice_of(GetParam(), 120);
  Session uninterrupted;
  const auto whole = uninterrupted(w, choice);
  ASSERT_GT(uninterrupted.calls, 4);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  for (const double share : {0.1, 0.4, 0.7, 0.95}) {
    std::filesystem::remove(path);
    const int stop_at = std::max(2, static_cast<int>(share * uninterrupted.calls));
    try {
      const auto part = Session(path, stop_at)(w, choice);
      EXPECT_EQ(part.report.stop, StopReason::interrupted) << stop_at;
      EXPECT_TRUE(part.problem.log_parameters().allFinite());
    } catch (const Interrupted&) {
    }
    const auto rest = Session(path)(w, choice);
    EXPECT_EQ(rest.problem.log_parameters(), whole.problem.log_parameters()) << stop_at;
    EXPECT_EQ(rest.report.stop, whole.report.stop) << stop_at;
    EXPECT_EQ(rest.report.steps, whole.report.steps) << stop_at;
    EXPECT_EQ(rest.report.gradients(), whole.report.gradients()) << stop_at;
    EXPECT_EQ(rest.warm_start.a, whole.warm_start.a) << stop_at;
  }
}

TEST_P(TrainerLaw, TellsEveryStepInOrder) {
  const auto w = make_world(GetParam().likelihood, 80);
  Session run;
  std::vector<int> told;
  run.on_step = [&](const StepReached& reached) {
    const auto& [at, step, seconds, approximation] = reached;
    EXPECT_TRUE(at.log_parameters().allFinite());
    EXPECT_GE(seconds, 0);
    told.push_back(step);
  };
  run(w, choice_of(GetParam(), 80));
  ASSERT_GE(told.size(), 2u);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], static_cast<int>(i));
}

std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  return test.param.trainer + (test.param.likelihood == "gaussian" ? "_gaussian" : "_classes");
}
INSTANTIATE_TEST_SUITE_P(Registry, TrainerLaw, ::testing::ValuesIn(cases()), case_name);

TEST(Trainers, SolvesThatMissTheirToleranceAreCountedAndNothingIsCalledConverged) {
  const auto w = make_world("gaussian", 200);
  auto choice = choice_of({"lbfgs", "gaussian"}, 200);
  choice.system.preconditioner = "none";
  choice.system.max_iterations = 1;
  Session run;
  run.options.steps = 2;
  const auto learned = run(w, choice);
  EXPECT_EQ(learned.report.loose_gradients, static_cast<int>(learned.report.history.size()));
  EXPECT_NE(learned.report.stop, StopReason::converged);
}

TEST(Trainers, ARegisteredOneIsAnOptionAndRuns) {
  const auto dummy =
      trainers().add({.name = "dummy",
                      .summary = "half a unit up in every log parameter",
                      .by_solves = true,
                      .from_start_values = true,
                      .on_surrogate = false,
                      .preference = [](const inference::Problem&) { return 0; },
                      .refusal = [](const inference::Problem&) { return std::string(); },
                      .run = [](Search& search, const Vector& start) -> Vector {
                        return search.box().inside(start.array() + 0.5);
                      }});
  const auto names = train_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "dummy"), names.end());
  const auto w = make_world("gaussian", 30);
  const auto learned = Session()(w, {.trainer = "dummy", .rows = 30});
  EXPECT_TRUE(learned.problem.log_parameters().isApprox(
      (w.start.log_parameters().array() + 0.5).matrix(), 1e-12));
}

}  // namespace trainer_test
}  // namespace mercer::training
