// Learning in levels of rows, its budget, and the correction that it carries from level to level.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/training/discrepancy.hpp"
#include "mercer/training/search.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/exact_reference.hpp"

namespace mercer::training {
namespace levels_test {

struct World {
  inference::Observations rows;
  inference::Problem start;
};

// A draw from the prior with little noise: the model is true, so that the information matrix is the
// curvature but for a share of 1/sqrt(n), and the Vecchia likelihood needs its corrections.
World make_world(Index n, double noise_sd = 0.02, const std::string& likelihood = "gaussian") {
  World w{{Matrix(n, 2), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse("matern52", 2), likelihoods::make(likelihood)}};
  Rng rng(5, "levels");
  rng.fill_normal(w.rows.x);
  // Matern 5/2 with lengthscale 1.
  Matrix k(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const double s = std::sqrt(5.0) * (w.rows.x.row(i) - w.rows.x.row(j)).norm();
      k(i, j) = (1 + s + s * s / 3) * std::exp(-s);
    }
  k.diagonal().array() += 1e-10;
  Vector z(n);
  rng.fill_normal(z);
  const Vector f = Eigen::LLT<Matrix>(k).matrixL() * z;
  for (Index i = 0; i < n; ++i)
    w.rows.y(i, 0) = w.start.gaussian() ? f(i) + noise_sd * rng.normal()
                                        : (rng.uniform() < 1 / (1 + std::exp(-3 * f(i))) ? 1 : 0);
  return w;
}

TrainingChoice choice_of(std::vector<Index> levels, Index n) {
  TrainingChoice choice;
  choice.trainer = "lbfgs";
  choice.rows = n;
  choice.levels = {60};
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
  std::vector<std::string> stages;

  explicit Session(const std::string& checkpoint = "", int stop_at = 0) {
    options.checkpoint = checkpoint;
    options.restarts = 0;
    progress = [this, stop_at](const Progress& now) {
      stages.push_back(now.stage);
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

double exact_optimum(const World& w, const inference::Problem& from) {
  return testing::exact_optimum(w.start, w.rows, from);
}

TEST(Levels, ReachTheExactOptimumWithinTheGainThatTheyState) {
  const auto w = make_world(800);
  const auto learned = Session()(w, choice_of({200}, 800));
  ASSERT_EQ(learned.report.stop, StopReason::converged);
  const auto& last = learned.report.history.back();
  EXPECT_EQ(last.rows, 800);
  EXPECT_EQ(learned.report.gradient_rows, 800);
  const double allowed =
      std::max(static_cast<double>(learned.report.gradient.size()) / 8, *last.noise_gain);
  EXPECT_LE(*last.predicted_gain, allowed);
  // What is left is what noise hides: its mean is noise_gain, and a chi-square of five degrees of
  // freedom is below 4 times its mean in 99.9 of 100 cases. The gain is to second order.
  EXPECT_GT(exact_value(w, learned.problem),
            exact_optimum(w, learned.problem) - 4 * std::max(0.1, *last.noise_gain) - allowed);
}

// The rule at the top of corrections.cpp.
TEST(Levels, AreLeftWhenTheNextOneHasMoreToFind) {
  const auto w = make_world(900);
  const std::vector<Index> levels = {100, 300};
  const auto learned = Session()(w, choice_of(levels, 900));
  const auto& history = learned.report.history;
  const double p = static_cast<double>(learned.problem.log_parameters().size());
  Index before = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_GE(history[i].rows, before);
    before = history[i].rows;
    if (history[i].rows == 900) continue;
    const double enough = std::max({0.1, *history[i].noise_gain, p / 2 * (1 - 1.0 / 3)});
    const bool left = i + 1 == history.size() || history[i + 1].rows > history[i].rows;
    // Or after four gradients there.
    const bool fourth = i >= 3 && history[i - 3].rows == history[i].rows;
    EXPECT_EQ(left, fourth || *history[i].predicted_gain <= enough) << "gradient " << i + 1;
  }
  for (const Index rows : {100, 300, 900})
    EXPECT_TRUE(std::any_of(history.begin(), history.end(), [&](const TrainStep& step) {
      return step.rows == rows;
    })) << rows;
}

// Gradients of the levels that memory suffices for come from factorisations.
class LevelsByFactorisation : public ::testing::TestWithParam<Index> {};
INSTANTIATE_TEST_SUITE_P(Rows, LevelsByFactorisation, ::testing::Values(0, 150, 300));

TEST_P(LevelsByFactorisation, StoppedOnAnyOfThemTheyGoOnToTheSameBits) {
  const auto w = make_world(300);
  auto choice = choice_of({75, 150}, 300);
  choice.factorable_rows = GetParam();
  Session uninterrupted;
  const auto whole = uninterrupted(w, choice);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  // At the first and the last call of each stage by solves: before and after a change of level.
  std::vector<int> stops;
  for (std::size_t i = 1; i < uninterrupted.stages.size(); ++i)
    if (uninterrupted.stages[i] != uninterrupted.stages[i - 1] && i + 1 > 20)
      stops.push_back(static_cast<int>(i) + 1);
  ASSERT_GE(stops.size(), 1u);
  for (const int stop_at : stops) {
    std::filesystem::remove(path);
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
    EXPECT_EQ(rest.report.products, whole.report.products) << stop_at;
  }
  // More memory than before changes nothing.
  std::filesystem::remove(path);
  try {
    Session{path, stops.front()}(w, choice);
  } catch (const Interrupted&) {
  }
  auto richer = choice;
  richer.factorable_rows = 300;
  if (std::filesystem::exists(path)) {
    const auto resumed = Session(path)(w, richer);
    if (resumed.report.resumed_gradients > 0) {
      EXPECT_EQ(resumed.problem.log_parameters(), whole.problem.log_parameters());
    }
  }
  std::filesystem::remove(path);
  Session{path}(w, choice);
  // Run again after its end it only says what it found.
  const auto again = Session(path)(w, choice);
  EXPECT_EQ(again.report.gradient, whole.report.gradient);
  EXPECT_EQ(again.report.gradient_rows, whole.report.gradient_rows);
}

TEST_P(LevelsByFactorisation, SaysWhichGradientsAreExact) {
  const auto w = make_world(300);
  auto choice = choice_of({75, 150}, 300);
  choice.factorable_rows = GetParam();
  const auto learned = Session()(w, choice);
  for (const auto& step : learned.report.history) {
    const bool fits = step.rows <= GetParam();
    if (!fits || step.rows < 300) {
      EXPECT_EQ(step.factored, fits) << step.number;
    }
    EXPECT_EQ(step.factored, step.log_likelihood.has_value());
    if (step.factored) {
      EXPECT_EQ(*step.noise_gain, 0);
    }
  }
}

// One iteration without a preconditioner solves nothing: such gradients are not learned from.
TEST(Levels, SolvesThatFailAreReplacedByFactorisations) {
  const auto w = make_world(300);
  auto choice = choice_of({}, 300);
  choice.system.preconditioner = "none";
  choice.system.max_iterations = 1;
  choice.factorable_rows = 300;
  const auto learned = Session()(w, choice);
  EXPECT_LE(learned.report.failed_gradients, 1);  // then solves are not tried again
  EXPECT_EQ(learned.report.loose_gradients, 0);
  ASSERT_FALSE(learned.report.history.empty());
  for (const auto& step : learned.report.history) EXPECT_TRUE(step.factored);
  EXPECT_EQ(learned.report.stop, StopReason::converged);
  const double allowed = static_cast<double>(learned.report.gradient.size()) / 8;
  EXPECT_GT(exact_value(w, learned.problem), exact_optimum(w, learned.problem) - 2 * allowed);
}

TEST(Levels, SolvesThatFailWithoutMemoryForFactorisationsLeaveTheSurrogate) {
  const auto w = make_world(300);
  auto choice = choice_of({150}, 300);
  choice.system.preconditioner = "none";
  choice.system.max_iterations = 1;
  const auto learned = Session()(w, choice);
  EXPECT_EQ(learned.report.failed_gradients, 1);
  EXPECT_TRUE(learned.report.history.empty());
  EXPECT_EQ(learned.report.stop, StopReason::stagnation);
  // The Vecchia likelihood with 31 neighbours in the plane is close to the exact one.
  EXPECT_GT(exact_value(w, learned.problem), exact_optimum(w, learned.problem) - 10);
}

TEST(Levels, ABudgetIsKeptAndItsEndIsSaid) {
  const auto w = make_world(600);
  auto choice = choice_of({150}, 600);
  const auto whole = Session()(w, choice);
  ASSERT_FALSE(whole.report.budget_spent);
  // What the first level took, and not enough for a gradient of all rows.
  double of_level = 0;
  for (const auto& step : whole.report.history)
    if (step.rows == 150) of_level += (static_cast<double>(step.matvecs) + 45) / 16;
  ASSERT_LT(of_level + 30, whole.report.products);
  choice.budget = static_cast<Index>(of_level) + 30;
  const auto part = Session()(w, choice);
  EXPECT_LE(part.report.products, static_cast<double>(*choice.budget));
  EXPECT_TRUE(part.report.budget_spent);
  EXPECT_EQ(part.report.stop, StopReason::iteration_limit);
  EXPECT_EQ(part.report.gradient_rows, 150);
  EXPECT_EQ(part.report.history.back().rows, 150);
  // All rows had their say: by the surrogate, with the correction of the level.
  choice.rows = 150;
  choice.solve_levels = {};
  choice.budget = {};
  const auto few = Session()(w, choice);
  EXPECT_GT(exact_value(w, part.problem), exact_value(w, few.problem));
}

TEST(Levels, WithoutProductsThereIsTheSurrogateAlone) {
  const auto w = make_world(300);
  auto choice = choice_of({75}, 300);
  choice.budget = 1;
  const auto learned = Session()(w, choice);
  EXPECT_EQ(learned.report.gradients(), 0);
  EXPECT_EQ(learned.report.products, 0);
  EXPECT_TRUE(learned.report.budget_spent);
  EXPECT_GT(learned.report.surrogate_evaluations, 0);
  EXPECT_GT(exact_value(w, learned.problem), exact_value(w, w.start));
}

TEST(Levels, ABudgetEndsOtherTrainersToo) {
  for (const char* trainer : {"newton", "adam"}) {
    const auto w = make_world(120, 0, "bernoulli-logit");
    TrainingChoice choice;
    choice.trainer = trainer;
    choice.rows = 120;
    choice.levels = {60};
    choice.system.solver = "cg";
    choice.system.preconditioner = "auto";
    const auto whole = Session()(w, choice);
    ASSERT_GE(whole.report.history.size(), 2u) << trainer;
    choice.budget = static_cast<Index>(whole.report.products / 2);
    const auto part = Session()(w, choice);
    EXPECT_LE(part.report.products, static_cast<double>(*choice.budget)) << trainer;
    EXPECT_TRUE(part.report.budget_spent) << trainer;
    EXPECT_EQ(part.report.stop, StopReason::iteration_limit) << trainer;
    EXPECT_LT(part.report.history.size(), whole.report.history.size()) << trainer;
  }
}

struct Linear {
  Matrix f{{4.0, 1.0}, {1.0, 3.0}};
  Matrix j{{-1.0, -0.5}, {-0.5, -0.6}};
  Vector c{{2.0, -1.0}};
  Vector at(const Vector& theta) const { return c + j * theta; }
};

TEST(Discrepancy, HasTheSlopeThatWasSeenAlongTheLastMove) {
  const Linear truth;
  Discrepancy d(2);
  const Vector first{{0.0, 0.0}}, second{{0.3, -0.1}};
  d.observe(first, truth.at(first), truth.f);
  EXPECT_EQ(d.slope().norm(), 0);
  d.observe(second, truth.at(second), truth.f);
  EXPECT_LT((d.at(second) - truth.at(second)).norm(), 1e-14);
  const Vector s = second - first;
  EXPECT_NEAR(s.dot(d.slope() * s), s.dot(truth.j * s), 1e-14);
  // Nothing was learned of what is conjugate to s.
  const Vector fs = truth.f * s, conjugate{{-fs(1), fs(0)}};
  EXPECT_LT((d.slope() * conjugate).norm(), 1e-13);
  // The integral: its gradient by central differences, exact for a quadratic but for rounding.
  const Vector here{{0.7, 0.2}};
  for (Index i = 0; i < 2; ++i) {
    const Vector step = 1e-3 * Vector::Unit(2, i);
    EXPECT_NEAR((d.integral(here + step) - d.integral(here - step)) / 2e-3, d.at(here)(i), 1e-11);
  }
  const Vector before = d.at(here);
  d.scale(4);
  EXPECT_LT((d.at(here) - 4 * before).norm(), 1e-13);
}

// In other units, theta = A phi, gradients are A'g and the information is A'F A.
TEST(Discrepancy, DoesNotDependOnUnits) {
  const Linear truth;
  const Matrix a{{10.0, 2.0}, {0.0, 0.3}};
  Discrepancy d(2), other(2);
  for (const Vector& phi : {Vector{{0.0, 0.0}}, Vector{{0.02, -0.5}}, Vector{{0.03, 0.1}}}) {
    const Vector theta = a * phi;
    d.observe(theta, truth.at(theta), truth.f);
    other.observe(phi, a.transpose() * truth.at(theta), a.transpose() * truth.f * a);
  }
  EXPECT_GT(d.slope().norm(), 0);
  EXPECT_LT((other.slope() - a.transpose() * d.slope() * a).norm(), 1e-10 * other.slope().norm());
}

// Whatever noise says, the curvature that is left is that of the surrogate at least.
TEST(Discrepancy, NeverTakesAwayCurvature) {
  const Linear truth;
  Discrepancy d(2);
  const Vector first{{0.0, 0.0}}, second{{0.1, 0.0}};
  d.observe(first, truth.c, truth.f);
  d.observe(second, truth.c + Vector{{10.0, 30.0}}, truth.f);
  EXPECT_EQ(d.slope().norm(), 0);
  d.observe(first, truth.c + 100 * second, truth.f);
  const Eigen::GeneralizedSelfAdjointEigenSolver<Matrix> eigen(d.slope(), truth.f);
  EXPECT_LE(eigen.eigenvalues().maxCoeff(), 1e-12);
  EXPECT_GE(eigen.eigenvalues().minCoeff(), -3 - 1e-12);
}

}  // namespace levels_test
}  // namespace mercer::training
