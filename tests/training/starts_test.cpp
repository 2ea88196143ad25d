// Several starts with Gaussian noise: where they end, what they cost, and the same bits when
// resumed or on another number of threads.
#include "mercer/training/starts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::training {
namespace starts_test {

constexpr Index kInputs = 4;

struct World {
  inference::Observations rows;
  inference::Problem start;
};

World make_world(Index n, double noise = 0.1) {
  World w{{Matrix(n, kInputs), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse("1*matern52:ard", kInputs), 0.1}};
  Rng rng(5, "starts");
  rng.fill_normal(w.rows.x);
  for (Index i = 0; i < n; ++i)
    w.rows.y(i, 0) =
        std::sin(2 * w.rows.x(i, 0)) + 0.4 * w.rows.x(i, 1) * w.rows.x(i, 2) + noise * rng.normal();
  return w;
}

struct Session {
  TrainOptions options;
  ProgressCallback progress;
  StepObserver on_step;

  Learned operator()(const World& w) {
    TrainingChoice choice;
    choice.trainer = "exact";
    choice.rows = w.rows.size();
    choice.levels = {w.rows.size()};
    return train(w.start, w.rows, choice, {options, 4, 99, progress, on_step});
  }
};

// Climbs on from theta until nothing is left.
double optimum_from(const World& w, const Vector& theta) {
  auto problem = w.start;
  const auto n = static_cast<double>(w.rows.size());
  const auto method =
      inference::make(inference::evidence_method(problem, inference::EvidenceBy::factorisation),
                      problem, {.rows = w.rows});
  const auto result = optim::lbfgs(
      [&](ConstVectorView at, VectorView gradient) {
        problem.set_log_parameters(at);
        const auto e = method->evaluate(problem, {});
        gradient = -e.gradient / n;
        return -e.value / n;
      },
      theta, bounds(w.start, w.rows), {.gradient_tolerance = 1e-6});
  return -result.value * n;
}

TEST(Starts, LeaveNoMoreThanTheySay) {
  for (const Index n : {150, 420}) {  // all starts on all rows; random starts on a part
    const auto w = make_world(n);
    const auto learned = Session()(w);
    EXPECT_EQ(learned.report.stop, StopReason::converged);
    EXPECT_TRUE(learned.likelihood.known);
    // 0.001 by the Hessian of a third of the rows, which may be wrong by a small factor.
    EXPECT_GT(learned.likelihood.value, optimum_from(w, learned.problem.log_parameters()) - 0.01)
        << n;
    EXPECT_GT(learned.likelihood.value, optimum_from(w, w.start.log_parameters()) - 0.01) << n;
  }
}

// A climb moves a start at a bound inside; the value known at the bound is not that of its start.
TEST(Starts, GoOnFromABound) {
  const auto w = make_world(420, 0.0);
  const auto learned = Session()(w);
  // At the least noise the value is known to few digits: on machines that round differently the
  // climb may end where no step improves it any more.
  EXPECT_TRUE(learned.report.stop == StopReason::converged ||
              learned.report.stop == StopReason::stagnation);
  EXPECT_EQ(learned.report.bounds_hit.back(), "noise_variance");
  EXPECT_GT(learned.likelihood.value, optimum_from(w, learned.problem.log_parameters()) - 0.1);
}

TEST(Starts, AreFewEvaluationsOfAllRows) {
  const auto w = make_world(450);
  Session run;
  int steps = 0;
  run.on_step = [&](const StepReached&) { ++steps; };
  const auto learned = run(w);
  // The observer is told of steps on all rows only: those of random starts are on a part.
  EXPECT_LT(steps, learned.report.steps);
  EXPECT_EQ(learned.report.restarts, 2);
}

TEST(Starts, StopAtTheStepsThatAreAskedFor) {
  const auto w = make_world(450);
  Session run;
  run.options.steps = 2;
  run.options.restarts = 0;
  const auto learned = run(w);
  EXPECT_EQ(learned.report.steps, 2);
  EXPECT_EQ(learned.report.stop, StopReason::iteration_limit);
}

TEST(Starts, SameBitsOnAnyNumberOfThreadsAndResumed) {
  const auto w = make_world(420);
  const auto whole = Session()(w);
  for (const int threads : {1, 3}) {
    const testing::WithThreads scope(threads);
    EXPECT_TRUE(
        testing::same_bits(Session()(w).problem.log_parameters(), whole.problem.log_parameters()))
        << threads;
  }
  const testing::TemporaryFolder folder;
  const auto file = folder.file("checkpoint");
  int calls = 0;
  Session counted;
  counted.progress = [&](const Progress&) {
    ++calls;
    return Action::proceed;
  };
  counted(w);
  const int total = calls;
  for (const int stop_at : {3, total / 2, total - 2}) {
    std::filesystem::remove(file);
    Session stopped, resumed;
    stopped.options.checkpoint = resumed.options.checkpoint = file;
    calls = 0;
    stopped.progress = [&](const Progress&) {
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
    try {
      stopped(w);
    } catch (const Interrupted&) {  // nothing learned yet
    }
    const auto rest = resumed(w);
    EXPECT_GT(rest.report.resumed_evaluations, 0) << stop_at;
    EXPECT_TRUE(testing::same_bits(rest.problem.log_parameters(), whole.problem.log_parameters()))
        << stop_at;
  }
}

TEST(Starts, AHessianPaysWhereItCostsLessThanItSaves) {
  EXPECT_TRUE(hessian_pays(300, 900, 40));
  EXPECT_TRUE(hessian_pays(300, 300, 8));
  EXPECT_FALSE(hessian_pays(300, 300, 9));
}

}  // namespace starts_test
}  // namespace mercer::training
