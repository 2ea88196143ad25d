// Newton's steps of other likelihoods on levels of rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/training/levels.hpp"
#include "mercer/training/search.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/exact_reference.hpp"

namespace mercer::training {
namespace newton_levels_test {

struct World {
  inference::Observations rows;
  inference::Problem start;
};

// A draw from the Poisson distribution: uniform numbers multiply to less than exp(-rate).
double count(double rate, Rng& rng) {
  double out = 0;
  for (double product = rng.uniform(); product > std::exp(-rate); ++out) product *= rng.uniform();
  return out;
}

// Classes or counts with a smooth function of two inputs behind them.
World make_world(const std::string& likelihood, Index n, const std::string& kernel = "matern32") {
  World w{{Matrix(n, 2), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse(kernel, 2), likelihoods::make(likelihood)}};
  Rng rng(11, "levels of classes and counts");
  rng.fill_normal(w.rows.x);
  const bool binary = w.start.likelihood->is_binary();
  for (Index i = 0; i < n; ++i) {
    const double f = std::sin(3 * w.rows.x(i, 0)) + 0.5 * w.rows.x(i, 1);
    w.rows.y(i, 0) =
        binary ? (rng.uniform() < 1 / (1 + std::exp(-3 * f)) ? 1 : 0) : count(std::exp(f), rng);
  }
  return w;
}

TrainingChoice choice_of(std::vector<Index> levels, Index n) {
  TrainingChoice choice;
  choice.trainer = "newton";
  choice.rows = n;
  choice.levels = {50};
  choice.solve_levels = std::move(levels);
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
    options.restarts = 0;
    progress = [this, stop_at](const Progress&) {
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
  }
  Learned operator()(const World& w, const TrainingChoice& choice) {
    return train(w.start, w.rows, choice, {options, 4, 99, progress, on_step});
  }
};

Index gradients_on(const TrainReport& report, Index rows) {
  return std::count_if(report.history.begin(), report.history.end(),
                       [&](const TrainStep& step) { return step.rows == rows; });
}

class NewtonLevels : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Likelihoods, NewtonLevels, ::testing::Values("bernoulli-logit", "poisson"),
                         [](const auto& test) {
                           return test.param == "poisson" ? "counts" : "classes";
                         });

TEST_P(NewtonLevels, ReachTheExactOptimumWithFewerGradientsOfAllRows) {
  const Index n = 900;
  const auto w = make_world(GetParam(), n);
  auto choice = choice_of({150, 300}, n);
  choice.factorable_rows = 150;
  Session with_levels, on_all;
  // The noise of 8 probes hides a few log units here, with levels or without.
  with_levels.options.probes = on_all.options.probes = 64;
  const auto with = with_levels(w, choice);
  const auto without = on_all(w, choice_of({}, n));
  EXPECT_EQ(with.report.stop, StopReason::converged);
  EXPECT_EQ(with.report.gradient_rows, n);
  EXPECT_LT(gradients_on(with.report, n), gradients_on(without.report, n));
  EXPECT_LT(with.report.products, without.report.products);
  for (const Index rows : choice.solve_levels)
    EXPECT_GT(gradients_on(with.report, rows), 0) << rows;
  // Of 8 probes three log units are allowed (trainer_test.cpp), and the variance of 64 is an eighth
  // of theirs: 0.4. The rule leaves 0.1 of the estimated function, and as much again of directions
  // with a slope below a third of its standard error; the gain is to second order.
  const double best = testing::exact_optimum(w.start, w.rows, with.problem);
  for (const auto* learned : {&with, &without})
    EXPECT_GT(testing::exact_value(w.rows, learned->problem), best - 1);
}

TEST_P(NewtonLevels, EndAsSoonAsTheNextOneHasMoreToFind) {
  const Index n = 900;
  const auto w = make_world(GetParam(), n);
  const auto choice = choice_of({100, 300}, n);
  const auto learned = Session()(w, choice);
  const auto& history = learned.report.history;
  const Levels levels(choice);
  const Index p = learned.problem.log_parameters().size();
  for (std::size_t i = 0; i + 1 < history.size(); ++i) {
    ASSERT_GE(history[i + 1].rows, history[i].rows);
    if (history[i].rows == n) continue;
    const std::size_t level = history[i].rows == 100 ? 0 : 1;
    const double enough =
        std::max({kNoGain, *history[i].noise_gain, levels.gain_to_leave(level, p)});
    if (*history[i].predicted_gain <= enough) {
      EXPECT_GT(history[i + 1].rows, history[i].rows) << "gradient " << i + 1;
    }
  }
  for (const Index rows : {100, 300}) EXPECT_LE(gradients_on(learned.report, rows), kMostOnLevel);
}

TEST_P(NewtonLevels, StoppedAnywhereTheyGoOnToTheSameBits) {
  const auto w = make_world(GetParam(), 200);
  auto choice = choice_of({70, 120}, 200);
  choice.factorable_rows = 70;
  Session uninterrupted;
  const auto whole = uninterrupted(w, choice);
  ASSERT_EQ(whole.report.gradient_rows, 200);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  std::vector<Index> resumed;
  for (int stop_at = 2; stop_at <= uninterrupted.calls; stop_at += 3) {
    std::filesystem::remove(path);
    try {
      const auto part = Session(path, stop_at)(w, choice);
      EXPECT_EQ(part.report.stop, StopReason::interrupted) << stop_at;
      EXPECT_TRUE(part.problem.log_parameters().allFinite());
    } catch (const Interrupted&) {
    }
    auto richer = choice;
    richer.factorable_rows = stop_at % 2 == 0 ? 70 : 120;  // more memory changes nothing
    const bool begun = [&] {
      Session look(path, 1);
      try {
        return look(w, choice).report.resumed_gradients > 0;
      } catch (const Interrupted&) {
        return false;
      }
    }();
    const auto rest = Session(path)(w, begun ? richer : choice);
    resumed.push_back(rest.report.resumed_gradients);
    EXPECT_EQ(rest.problem.log_parameters(), whole.problem.log_parameters()) << stop_at;
    EXPECT_EQ(rest.report.stop, whole.report.stop) << stop_at;
    EXPECT_EQ(rest.report.steps, whole.report.steps) << stop_at;
    EXPECT_EQ(rest.report.gradients(), whole.report.gradients()) << stop_at;
    EXPECT_EQ(rest.report.products, whole.report.products) << stop_at;
    EXPECT_EQ(rest.report.gradient, whole.report.gradient) << stop_at;
    EXPECT_EQ(rest.warm_start.a, whole.warm_start.a) << stop_at;
  }
  // In the middle of every level.
  for (Index k = 0; k < whole.report.gradients(); ++k)
    EXPECT_TRUE(std::find(resumed.begin(), resumed.end(), k) != resumed.end()) << k;
}

TEST_P(NewtonLevels, SayWhichGradientsAreExact) {
  const auto w = make_world(GetParam(), 300);
  auto choice = choice_of({75, 150}, 300);
  for (const Index fit : {0, 75, 150, 300}) {
    choice.factorable_rows = fit;
    const auto learned = Session()(w, choice);
    for (const auto& step : learned.report.history) {
      EXPECT_EQ(step.factored, step.rows <= fit && step.rows < 300) << step.number;
      EXPECT_EQ(step.factored, step.log_likelihood.has_value());
      if (step.factored) {
        EXPECT_EQ(*step.noise_gain, 0);
      }
    }
  }
}

TEST(NewtonLevelsAlone, ABudgetEndsThemWhereItIsSpent) {
  const auto w = make_world("bernoulli-logit", 300);
  auto choice = choice_of({100}, 300);
  const auto whole = Session()(w, choice);
  double of_level = 0;
  for (const auto& step : whole.report.history)
    if (step.rows == 100) of_level += (static_cast<double>(step.matvecs) + 45) / 9;
  choice.budget = static_cast<Index>(of_level) + 40;
  const auto part = Session()(w, choice);
  EXPECT_LE(part.report.products, static_cast<double>(*choice.budget));
  EXPECT_TRUE(part.report.budget_spent);
  EXPECT_EQ(part.report.stop, StopReason::iteration_limit);
  EXPECT_EQ(part.report.gradient_rows, 100);
  // What the level has learned is kept.
  EXPECT_GT(testing::exact_value(w.rows, part.problem), testing::exact_value(w.rows, w.start));
}

// One lengthscale per input and the noise of two probes: what few rows know keeps the steps short.
TEST(NewtonLevelsAlone, NoiseDoesNotUndoWhatFewerRowsKnow) {
  const Index n = 600;
  const auto w = make_world("bernoulli-logit", n, "rbf + matern32");
  auto choice = choice_of({300}, n);
  choice.levels = {150};
  choice.factorable_rows = 300;
  Session few;
  few.options.subset = 300;
  auto on_few = choice;
  on_few.trainer = "exact";
  on_few.rows = 300;
  on_few.levels = {150, 300};
  on_few.solve_levels = {};
  const auto known = few(w, on_few);
  Session run;
  run.options.probes = 2;
  const auto learned = run(w, choice);
  ASSERT_GT(*learned.report.history.back().noise_gain, 0);
  EXPECT_GT(testing::exact_value(w.rows, learned.problem),
            testing::exact_value(w.rows, known.problem) - 1);
}

TEST(LevelsRule, HasTheNumbersOfItsFormula) {
  TrainingChoice choice;
  choice.rows = 1600;
  choice.solve_levels = {100, 400, 1600};  // one that is not fewer is none
  const Levels levels(choice);
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_DOUBLE_EQ(levels.gain_to_leave(0, 4), 0.5 * 4 * 0.75);
  EXPECT_EQ(levels.gain_to_leave(2, 4), 0);
  EXPECT_DOUBLE_EQ(Levels::gain_on_more(1.5, 4, 4), 4 * 1.5 + 2 * 3);
  EXPECT_DOUBLE_EQ(levels.share(1), 1.0 / 16);
  EXPECT_DOUBLE_EQ(levels.fraction(2, 1), 1);
  EXPECT_EQ(levels.fraction(0, 0), 0);
}

TEST(LevelsRule, WeightsGoWithTheirRows) {
  const auto w = make_world("bernoulli-logit", 40);
  const auto choice = choice_of({}, 40);
  Session session;
  const LearnRequest request{session.options, 4, 99, session.progress, session.on_step};
  const Search search(w.start, w.rows, choice, request);
  const auto few = search.rows(10);
  const Matrix a = Vector::LinSpaced(10, 1, 10);
  for (const Index more : {20, 40}) {
    const auto on_more = search.on_more_rows({.a = a}, more);
    const auto rows = search.rows(more);
    ASSERT_EQ(on_more.a.rows(), more);
    EXPECT_DOUBLE_EQ(on_more.a.sum(), 55);
    for (Index i = 0; i < more; ++i)
      if (const double weight = on_more.a(i, 0); weight > 0) {
        EXPECT_EQ(rows.x.row(i), few.x.row(static_cast<Index>(weight) - 1)) << more;
      }
  }
  EXPECT_EQ(search.on_more_rows({.a = a}, 5).a.size(), 0);
}

}  // namespace newton_levels_test
}  // namespace mercer::training
