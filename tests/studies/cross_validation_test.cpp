#include "mercer/studies/cross_validation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/split.hpp"
#include "mercer/inference/exact/leave_one_out.hpp"
#include "mercer/models/merging.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::studies {
namespace cross_validation_test {

data::Dataset wave(Index n, std::uint64_t seed = 1) {
  Matrix x(n, 2);
  Rng(seed, "points").fill_normal(x);
  Vector noise(n);
  Rng(seed, "noise").fill_normal(noise);
  Vector y = (2 * x.col(0)).array().sin() + 3 * x.col(1).array() + 10;
  y += 0.2 * noise;
  return data::make_dataset(x, y);
}

models::FitOptions with_mean(const char* mean) {
  models::FitOptions fit;
  fit.method.kernel = "rbf";
  fit.method.mean = mean;
  fit.train.restarts = 1;
  return fit;
}

std::vector<Index> all_but(Index n, Index left_out) {
  std::vector<Index> rows;
  for (Index i = 0; i < n; ++i)
    if (i != left_out) rows.push_back(i);
  return rows;
}

// Both factor matrices whose condition is about N v / s2 < 1e6: 1e-8 is a hundred times the
// rounding.
TEST(LeaveOneOut, IsRefittingWithTheHyperparametersAndTheScalingOfAllRows) {
  for (const char* mean : {"zero", "constant", "linear"}) {
    auto data = wave(30);
    data.inputs.row(7) = data.inputs.row(3);  // merged by fit, but an observation each here
    data.noise.count = Vector::LinSpaced(30, 1, 4);
    const CvOptions options{.fit = with_mean(mean), .folds = "loo"};
    const auto result = cross_validate(data, options);
    ASSERT_TRUE(result.closed_form && result.all_rows) << mean;
    for (Index i = 0; i < 30; ++i) {
      const auto rest = data::take_rows(data, all_but(30, i));
      const auto refit = models::refit(result.all_rows->model, rest, options.fit);
      const models::Predictor predictor(refit.model, {});
      const auto p = predictor.predict(data.inputs.row(i), {},
                                       {.variance = {}, .count = data.noise.count.segment(i, 1)});
      EXPECT_NEAR(result.rows.mean(i), p.mean(0), 1e-8) << mean << ", row " << i;
      EXPECT_NEAR(result.rows.sd_obs(i), p.sd_obs(0), 1e-8) << mean;
      EXPECT_NEAR(result.rows.latent_sd(i), p.latent_sd(0, 0), 1e-8) << mean;
      EXPECT_NEAR(result.rows.q95(i), p.q95(0), 1e-8) << mean;
    }
  }
}

TEST(LeaveOneOut, ScoresAreThoseOfItsPredictions) {
  const auto data = wave(25);
  const auto result = cross_validate(data, {.fit = with_mean("zero"), .folds = "loo"});
  const Vector error = data.target - result.rows.mean;
  EXPECT_NEAR(result.scores.numbers->rmse, std::sqrt(error.squaredNorm() / 25), 1e-13);
  // The standard error of a root mean square by the delta method.
  const Vector squares = error.array().square();
  const double of_mean = std::sqrt((squares.array() - squares.mean()).square().sum() / 24 / 25);
  EXPECT_NEAR(*result.summary[0].standard_error, of_mean / (2 * result.scores.numbers->rmse),
              1e-13);
}

TEST(LeaveOneOut, ATrendThatOneRowDecidesIsRefused) {
  auto data = wave(20);
  data.inputs.col(1).setZero();
  data.inputs(4, 1) = 1;
  try {
    cross_validate(data, {.fit = with_mean("linear"), .folds = "loo"});
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("row 5"), std::string::npos) << error.what();
  }
}

TEST(LeaveOneOut, MergedRowsAreRefused) {
  auto data = wave(10);
  data.inputs.row(7) = data.inputs.row(3);
  auto rows = models::merge_replicates(models::scale(data, true).data);
  const inference::Problem problem{kernels::Kernel::parse("rbf", 2), 0.1};
  EXPECT_THROW(inference::leave_one_out(problem, rows), InvalidArgument);
}

TEST(CrossValidation, AFoldKnowsNothingOfItsRows) {
  auto data = wave(40);
  const CvOptions options{.fit = with_mean("zero"), .folds = "4"};
  const auto before = cross_validate(data, options);
  // Targets of a fold do not change what is predicted for it, and do change all else.
  for (Index i = 0; i < 40; ++i)
    if (before.rows.fold[static_cast<std::size_t>(i)] == 2) data.target(i) *= 1.5;
  const auto after = cross_validate(data, options);
  ASSERT_EQ(before.rows.fold, after.rows.fold);
  for (Index i = 0; i < 40; ++i)
    EXPECT_EQ(before.rows.mean(i) == after.rows.mean(i),
              before.rows.fold[static_cast<std::size_t>(i)] == 2);
}

TEST(CrossValidation, PooledScoresAreThoseOfAllRows) {
  const auto data = wave(41);
  const auto result = cross_validate(data, {.fit = with_mean("zero"), .folds = "4"});
  ASSERT_EQ(result.folds.size(), 4U);
  models::ScoreKeeper keeper;
  keeper.add(data.target, result.rows.mean, result.rows.sd_obs);
  const auto expected = score_values({keeper.scores(), {}});
  for (std::size_t s = 0; s < expected.size(); ++s)
    EXPECT_NEAR(*result.summary[s].value, *expected[s].value, 1e-13) << expected[s].name;
}

TEST(CrossValidation, TheSameBitsOnAnyNumberOfThreads) {
  const auto data = wave(60);
  const int threads = num_threads();
  set_num_threads(1);
  const auto one = cross_validate(data, {.fit = with_mean("constant"), .folds = "3"});
  set_num_threads(3);
  const auto three = cross_validate(data, {.fit = with_mean("constant"), .folds = "3"});
  set_num_threads(threads);
  EXPECT_TRUE(one.rows.mean == three.rows.mean);
  EXPECT_TRUE(one.rows.sd_obs == three.rows.sd_obs);
}

TEST(CrossValidation, ClassesAreSpreadOverTheFolds) {
  auto data = wave(50);
  for (Index i = 0; i < 50; ++i) data.target(i) = i < 10 ? 1 : 0;
  const auto folds = random_folds(data, 5, true, 3);
  for (Index f = 0; f < 5; ++f) {
    EXPECT_EQ(std::count(folds.begin(), folds.end(), f), 10);
    EXPECT_EQ(std::count(folds.begin(), folds.begin() + 10, f), 2);
  }
}

TEST(CrossValidation, FoldsOfTheDataAreUsedAndNamed) {
  auto data = wave(30);
  data.fold_names = {"north", "none", "south"};
  for (Index i = 0; i < 30; ++i) data.fold.push_back(i % 2 == 0 ? 0 : 2);
  const auto result = cross_validate(data, {.fit = with_mean("zero")});
  ASSERT_EQ(result.folds.size(), 2U);
  EXPECT_EQ(result.folds[1].name, "south");
  EXPECT_EQ(result.rows.fold[1], 1);
}

TEST(CrossValidation, StoppedItReturnsTheFoldsThatAreDone) {
  const auto data = wave(40);
  const auto progress = [](const Progress& now) {
    return now.fraction >= 0.5 ? Action::stop : Action::proceed;
  };
  const auto result = cross_validate(data, {.fit = with_mean("zero"), .folds = "4"}, progress);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.folds.size(), 2U);
  EXPECT_EQ(result.rows_done, 20);
  EXPECT_EQ(std::count(result.rows.fold.begin(), result.rows.fold.end(), -1), 20);
  EXPECT_EQ(result.scores.numbers->n, 20);
}

TEST(CrossValidation, NumbersOfFolds) {
  EXPECT_EQ(number_of_folds("loo"), 0);
  EXPECT_EQ(number_of_folds("7"), 7);
  for (const char* text : {"1", "0", "-2", "2.5", "", "ten", "7 "})
    EXPECT_THROW(number_of_folds(text), InvalidArgument) << text;
  EXPECT_THROW(cross_validate(wave(5), {.folds = "6"}), DataError);
}

}  // namespace cross_validation_test
}  // namespace mercer::studies
