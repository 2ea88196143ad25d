// Calls of the library cancelled by their progress callback in the middle of long work, each caller
// by its own.
#include <gtest/gtest.h>

#include <thread>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"
#include "mercer/models/solve.hpp"

namespace mercer::models {
namespace cancel_test {

// Long enough for the callback to be asked inside a factorisation on any machine: 72 Gflop.
constexpr Index kMany = 6000;

data::Dataset waves(Index n) {
  Matrix x(n, 3);
  Rng(9, "waves").fill_normal(x);
  Vector y(n);
  for (Index i = 0; i < n; ++i) y(i) = std::sin(x(i, 0)) + x(i, 1) * x(i, 2);
  return data::make_dataset(std::move(x), std::move(y));
}

FitOptions fixed(const char* solver) {
  FitOptions options;
  options.method.kernel = "matern32";
  options.method.lengthscale = {1.0};
  options.method.signal_variance = 1.0;
  options.method.noise = 1e-3;
  options.method.solver = solver;
  options.train.train = "none";
  return options;
}

/// Says stop the first time it is asked between tiles, and counts what comes after that.
struct Stopper {
  int after = 0;
  bool stopped = false;
  ProgressCallback callback() {
    return [this](const Progress& progress) {
      if (stopped) ++after;
      stopped = stopped || progress.between_tiles;
      return stopped ? Action::stop : Action::proceed;
    };
  }
};

TEST(Cancel, AFitInTheMiddleOfItsSolve) {
  const auto data = waves(kMany);
  for (const char* solver : {"cholesky", "cg"}) {
    Stopper stopper;
    EXPECT_THROW(fit(data, fixed(solver), stopper.callback()), Interrupted) << solver;
    EXPECT_TRUE(stopper.stopped) << solver;
    EXPECT_EQ(stopper.after, 0) << solver;
  }
  Stopper stopper;
  EXPECT_THROW(solve(data, fixed("cholesky"), stopper.callback()), Interrupted);
  EXPECT_EQ(stopper.after, 0);
}

TEST(Cancel, LearningBeforeAnythingIsLearned) {
  auto options = fixed("auto");
  options.train.train = "exact";
  options.train.subset = kMany;
  Stopper stopper;
  EXPECT_THROW(fit(waves(kMany), options, stopper.callback()), Interrupted);
  // Where a first evaluation was done by then, the fit asks once more: whether to make its model.
  EXPECT_LE(stopper.after, 1);
}

TEST(Cancel, APredictorRemainsUsable) {
  const auto model = fit(waves(1500), fixed("cholesky")).model;
  PredictOptions options;
  options.variance.method = "exact";
  const Predictor predictor(model, options);
  Matrix at(20000, 3);
  Rng(3, "places").fill_normal(at);
  const Matrix few = at.topRows(50);
  const auto before = predictor.predict(few);
  Stopper stopper;
  EXPECT_THROW(predictor.predict(at, stopper.callback()), Interrupted);
  const auto after = predictor.predict(few);
  EXPECT_EQ(after.mean, before.mean);
  EXPECT_EQ(after.latent_sd, before.latent_sd);
}

TEST(Cancel, TwoThreadsHaveTheirOwnObservers) {
  const auto many = waves(kMany), few = waves(600);
  auto options = fixed("cholesky");
  const auto alone = fit(few, options);
  Stopper stopper;
  bool thrown = false;
  std::thread other([&] {
    try {
      fit(many, options, stopper.callback());
    } catch (const Interrupted&) {
      thrown = true;
    }
  });
  int calls = 0;
  const auto beside = fit(few, options, [&](const Progress&) {
    ++calls;
    return Action::proceed;
  });
  other.join();
  EXPECT_TRUE(thrown);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(beside.model.function().weights.w, alone.model.function().weights.w);
}

}  // namespace cancel_test
}  // namespace mercer::models
