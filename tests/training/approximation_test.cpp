// Learning by the evidence of every approximation of the registry.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/training/approximate_climb.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::training {
namespace approximation_test {

struct World {
  inference::Observations rows;
  inference::Problem start{kernels::Kernel::parse("matern52", 2), 0.1};
};

World make_world(Index n) {
  World w;
  w.rows.x.resize(n, 2);
  w.rows.y.resize(n, 1);
  Rng rng(5, "approximations");
  rng.fill_normal(w.rows.x);
  for (Index i = 0; i < n; ++i)
    w.rows.y(i, 0) = std::sin(2 * w.rows.x(i, 0)) + 0.4 * w.rows.x(i, 1) + 0.2 * rng.normal();
  return w;
}

// Narrow cells in x_2, each with a level of its own: a process with the lengthscale of a cell and
// hardly any noise explains all rows, which few base points cannot follow.
World make_cells(Index n) {
  constexpr double kCells = 40;
  World w;
  w.rows.x.resize(n, 2);
  w.rows.y.resize(n, 1);
  Rng rng(6, "cells");
  Vector level(static_cast<Index>(kCells));
  for (auto& entry : level) entry = rng.normal();
  for (Index i = 0; i < n; ++i) {
    const double u = rng.uniform();
    const auto cell = std::min(static_cast<Index>(kCells * u), level.size() - 1);
    w.rows.x(i, 0) = 3 * rng.uniform() - 1.5;
    w.rows.x(i, 1) = 3 * (static_cast<double>(cell) / kCells) - 1.5;
    w.rows.y(i, 0) = std::sin(2 * w.rows.x(i, 0)) + level(cell) + 0.01 * rng.normal();
  }
  return w;
}

std::vector<std::string> names() {
  const auto w = make_world(30);
  std::vector<std::string> out;
  for (const auto& entry : inference::methods())
    if (entry.abilities.approximate && entry.refusal(w.start, w.rows).empty())
      out.emplace_back(entry.name);
  return out;
}

TrainingChoice choice_of(const std::string& name, Index n, Index rank = 15) {
  TrainingChoice choice;
  choice.trainer = exact_trainer().name;
  choice.rows = n;
  choice.levels = {n / 2};
  choice.approximation = name;
  const auto& can = inference::methods().find(name).abilities;
  if (can.base) choice.sparse.rank = rank;
  if (can.blocks) choice.sparse.blocks = 4;
  return choice;
}

// Levels that a plan would give this method on so many rows, after exact climbs on 1,000.
std::vector<Index> planned_levels(const std::string& name, Index n, Index rank = 1000) {
  const auto w = make_world(2);
  return approximation_levels(inference::methods().find(name),
                              {.n = n,
                               .d = 2,
                               .parameters = w.start.kernel.num_parameters(),
                               .speed = inference::nominal_speeds(w.start.kernel, 2),
                               .rank = rank},
                              1000);
}

bool takes_levels(const std::string& name) { return !planned_levels(name, 1000000).empty(); }

// A run whose progress callback says stop at the call of this number; 0: never.
struct Session {
  TrainOptions options;
  ProgressCallback progress;
  StepObserver on_step;
  int calls = 0;

  explicit Session(const std::string& checkpoint = "", int stop_at = 0) {
    options.checkpoint = checkpoint;
    options.restarts = 0;
    progress = [this, stop_at](const Progress&) {
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
  }
  Learned operator()(const World& w, const TrainingChoice& choice) {
    return train(w.start, w.rows, choice, {options, 4, 99, progress, on_step});
  }
};

class ApproximationLaw : public ::testing::TestWithParam<std::string> {};

// On these data, and with the same rows in the evidence.
TEST_P(ApproximationLaw, IsNoWorseThanTheStartValues) {
  if (!takes_levels(GetParam())) GTEST_SKIP() << "the evidence is that of its base points alone";
  for (const auto& w : {make_world(120), make_cells(240)}) {
    const auto choice = choice_of(GetParam(), w.rows.size(), 10);
    const auto learned = Session()(w, choice);
    const auto method =
        inference::make(GetParam(), w.start, {.rows = w.rows, .seed = 4, .sparse = choice.sparse});
    const double start = method->evaluate(w.start, {.gradient = false}).value;
    EXPECT_GE(learned.likelihood.value, start - 1e-9 * std::abs(start));
  }
}

// At the end the gradient of its own evidence, with the base points it kept, is nothing: L-BFGS
// stops where five steps gained less than 1e-9 of the value per row, and near a maximum what is
// left is of second order in the gradient.
TEST_P(ApproximationLaw, EndsWhereItsEvidenceIsLargest) {
  const auto w = make_world(120);
  auto choice = choice_of(GetParam(), 120);
  // With the Hessian of half of the rows it ends early: where 0.05 log units are left by estimate.
  const auto early = Session()(w, choice);
  choice.levels = {80};
  const auto learned = Session()(w, choice);
  EXPECT_GT(learned.report.approximate_evaluations, 2);
  if (!inference::methods().find(GetParam()).abilities.base) {  // the same evidence then
    EXPECT_GT(early.likelihood.value, learned.likelihood.value - 0.5);
  }
  ASSERT_FALSE(learned.approximation.empty());
  const auto method =
      inference::make(GetParam(), w.start, {.rows = w.rows, .seed = 4, .sparse = choice.sparse});
  method->load(learned.approximation, w.start);
  const auto end = method->evaluate(learned.problem, {});
  EXPECT_DOUBLE_EQ(end.value, learned.likelihood.value);
  EXPECT_LT(end.gradient.norm(), 0.05);
  EXPECT_EQ(learned.likelihood.method, GetParam());
  EXPECT_EQ(learned.likelihood.rows, 120);
}

// What is called converged leaves no gradient, also where few rows are explained with hardly any
// noise and the evidence of few base points is steep there: a
// Hessian from there must not end the climb.
TEST_P(ApproximationLaw, ASteepStartDoesNotEndTheClimb) {
  if (!takes_levels(GetParam())) GTEST_SKIP() << "the evidence is that of its base points alone";
  const auto w = make_cells(480);
  auto choice = choice_of(GetParam(), 480, 10);
  choice.levels = {120};
  choice.solve_levels = {160};
  const auto learned = Session()(w, choice);
  const Vector theta = learned.problem.log_parameters(), g = learned.likelihood.gradient;
  ASSERT_EQ(learned.report.stop, StopReason::converged);
  for (Index i = 0; i < g.size(); ++i) {
    if (std::abs(theta(i)) > 4) continue;  // near a bound, which keeps its gradient
    EXPECT_LT(g(i) * g(i) / 480, 0.5) << i << " of " << theta;
  }
}

TEST_P(ApproximationLaw, StoppedAnywhereItGoesOnToTheSameBits) {
  const auto w = make_world(100);
  auto choice = choice_of(GetParam(), 100);
  choice.levels = {25};
  if (takes_levels(GetParam())) choice.solve_levels = {30, 60};
  Session uninterrupted;
  const auto whole = uninterrupted(w, choice);
  ASSERT_GT(uninterrupted.calls, 4);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  for (const double share : {0.2, 0.4, 0.6, 0.9}) {
    std::filesystem::remove(path);
    const int stop_at = std::max(2, static_cast<int>(share * uninterrupted.calls));
    try {
      const auto part = Session(path, stop_at)(w, choice);
      EXPECT_EQ(part.report.stop, StopReason::interrupted) << stop_at;
    } catch (const Interrupted&) {
    }
    const auto rest = Session(path)(w, choice);
    EXPECT_EQ(rest.problem.log_parameters(), whole.problem.log_parameters()) << stop_at;
    EXPECT_EQ(rest.approximation, whole.approximation) << stop_at;
    EXPECT_EQ(rest.likelihood.value, whole.likelihood.value) << stop_at;
  }
}

// With the same base points and blocks it is the same function that is climbed, so the same maximum
// is reached, up to what may be left to gain: 0.05 log units by the quadratic model at the end of
// each of the two climbs. The model may be wrong by a factor of a few: 0.3.
TEST_P(ApproximationLaw, LevelsLeadToTheSameEvidence) {
  if (!takes_levels(GetParam())) GTEST_SKIP() << "costs the same on fewer rows";
  const auto w = make_world(400);
  auto choice = choice_of(GetParam(), 400);
  choice.levels = {40};
  const auto alone = Session()(w, choice);
  choice.solve_levels = {80, 160};
  const auto learned = Session()(w, choice);
  EXPECT_EQ(alone.report.level_evaluations, 0);
  EXPECT_GT(learned.report.level_evaluations, 2);
  EXPECT_NEAR(learned.likelihood.value, alone.likelihood.value, 0.3);
  EXPECT_EQ(learned.likelihood.rows, 400);
  EXPECT_EQ(learned.approximation, alone.approximation);  // base points and blocks
}

INSTANTIATE_TEST_SUITE_P(Registry, ApproximationLaw, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// Ended by the same rule, all methods together: 39 evaluations with levels and 66 without when this
// was written. 24 of the 66 are of climbs that went on because their end was doubted: without that
// rule it was 39 and 42, so that on 400 rows it is where a climb begins that levels improve.
TEST(Approximation, LevelsTakeFewerEvaluationsOnAllRows) {
  const auto w = make_world(400);
  int with = 0, without = 0;
  for (const auto& name : names()) {
    if (!takes_levels(name)) continue;
    auto choice = choice_of(name, 400);
    choice.levels = {40};
    without += Session()(w, choice).report.approximate_evaluations;
    choice.solve_levels = {80, 160};
    const auto report = Session()(w, choice).report;
    with += report.approximate_evaluations - report.level_evaluations;
  }
  EXPECT_LT(with, without) << with << " and " << without;
}

TEST(Approximation, LevelsAreQuartersOfTheRows) {
  using Rows = std::vector<Index>;
  Index without = 0;
  for (const auto& name : names()) {
    if (planned_levels(name, 223874).empty()) {
      ++without;
      continue;
    }
    EXPECT_EQ(planned_levels(name, 223874), (Rows{13992, 55968})) << name;
    EXPECT_EQ(planned_levels(name, 15000), Rows{}) << name;
    if (inference::methods().find(name).abilities.base) {
      // No level has fewer rows than four times the base points.
      EXPECT_EQ(planned_levels(name, 223874, 5000), (Rows{55968})) << name;
    }
  }
  EXPECT_EQ(without, 1);  // the one that evaluates m rows, whatever N
  EXPECT_EQ(level_blocks(100, 250, 1000), 25);
  EXPECT_EQ(level_blocks(2, 100, 1000), 1);
  EXPECT_EQ(level_blocks(500, 100, 100), 100);
}

std::string moving() {
  for (const auto& entry : inference::methods())
    if (entry.abilities.optimizes_base) return std::string(entry.name);
  return "";
}

TEST(Approximation, MovingBasePointsGainsEvidenceAndResumes) {
  const auto w = make_world(100);
  auto choice = choice_of(moving(), 100, 6);
  const auto fixed = Session()(w, choice);
  choice.moves_base = true;
  Session uninterrupted;
  const auto whole = uninterrupted(w, choice);
  EXPECT_GT(whole.likelihood.value, fixed.likelihood.value);
  EXPECT_GT(whole.report.base_evaluations, 0);
  EXPECT_EQ(whole.report.base_points, 6);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  const auto part = Session(path, uninterrupted.calls - 2)(w, choice);
  EXPECT_EQ(part.report.stop, StopReason::interrupted);
  const auto rest = Session(path)(w, choice);
  EXPECT_EQ(rest.problem.log_parameters(), whole.problem.log_parameters());
  EXPECT_EQ(rest.approximation, whole.approximation);
}

TEST(Approximation, AdamClimbsItsEvidenceFromTheStartValues) {
  const auto w = make_world(80);
  auto choice = choice_of(names().front(), 80);
  choice.trainer = "adam";
  choice.levels.clear();
  Session run;
  run.options.steps = 15;
  std::vector<int> told;
  bool with_base = true;
  run.on_step = [&](const StepReached& reached) {
    told.push_back(reached.step);
    if (reached.step > 0) with_base = with_base && reached.approximation != nullptr;
  };
  const auto learned = run(w, choice);
  EXPECT_EQ(learned.report.approximate_evaluations, 15);
  EXPECT_TRUE(with_base);
  ASSERT_EQ(told.size(), 16u);
  const auto method = inference::make(choice.approximation, w.start,
                                      {.rows = w.rows, .seed = 4, .sparse = choice.sparse});
  method->load(learned.approximation, w.start);
  EXPECT_GT(method->evaluate(learned.problem, {}).value, method->evaluate(w.start, {}).value);
}

TEST(Approximation, TrainersOfTheExactProcessAreRefused) {
  const auto w = make_world(40);
  for (const char* trainer : {"lbfgs", "vecchia"}) {
    auto choice = choice_of(names().front(), 40);
    choice.trainer = trainer;
    EXPECT_THROW(Session()(w, choice), InvalidArgument) << trainer;
  }
}

TEST(Approximation, FewerRowsHaveTheirOwnBasePoints) {
  const auto w = make_world(90);
  auto choice = choice_of(names().front(), 60);
  const auto learned = Session()(w, choice);
  EXPECT_TRUE(learned.approximation.empty());
  EXPECT_EQ(learned.likelihood.rows, 60);
}

}  // namespace approximation_test
}  // namespace mercer::training
