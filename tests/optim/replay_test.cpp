#include "mercer/optim/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/optim/lbfgs.hpp"

namespace mercer::optim {
namespace replay_test {

/// Rosenbrock with a forbidden corner, so that the log holds a rejected point too.
double live_function(ConstVectorView x, VectorView g) {
  if (x(0) > 1.0005) throw NotPositiveDefinite("corner", 0);
  const double a = 1 - x(0), b = x(1) - x(0) * x(0);
  g(0) = -2 * a - 400 * b * x(0);
  g(1) = 200 * b;
  return a * a + 100 * b * b;
}

const Vector start = (Vector(2) << -1.2, 1).finished();
const Box box(Vector::Constant(2, -3), Vector::Constant(2, 3));

TEST(Replay, ResumesToTheSameBitsFromEveryLength) {
  ReplayLog whole;
  const auto expected = lbfgs(whole.record(live_function), start, box);
  const auto& all = whole.evaluations();
  ASSERT_GT(all.size(), 10u);
  EXPECT_EQ(whole.num_live(), static_cast<Index>(all.size()));

  for (std::size_t kept = 0; kept <= all.size(); ++kept) {
    ReplayLog log({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept)});
    int calls = 0;
    const auto counted = [&](ConstVectorView x, VectorView g) {
      ++calls;
      return live_function(x, g);
    };
    const auto result = lbfgs(log.record(counted), start, box);
    EXPECT_EQ(calls, static_cast<int>(all.size() - kept));
    EXPECT_EQ(log.num_replayed(), static_cast<Index>(kept));
    EXPECT_EQ(log.num_dropped(), 0);
    EXPECT_EQ(result.theta, expected.theta);  // exact comparison on purpose
    EXPECT_EQ(result.value, expected.value);
    EXPECT_EQ(result.iterations, expected.iterations);
    EXPECT_EQ(log.packed(), whole.packed());
  }
}

TEST(Replay, SurvivesPacking) {
  ReplayLog log;
  lbfgs(log.record(live_function), start, box, {.max_iterations = 4});
  const auto numbers = log.packed();
  auto again = ReplayLog::unpacked(numbers, 2);
  EXPECT_EQ(again.packed(), numbers);
  lbfgs(again.record(
            [](ConstVectorView, VectorView) -> double { throw std::logic_error("asked again"); }),
        start, box, {.max_iterations = 4});
  EXPECT_EQ(again.num_live(), 0);
  EXPECT_THROW(ReplayLog::unpacked(std::span(numbers).first(3), 2), InvalidArgument);
}

TEST(Replay, DropsTheRestWhenTheRunIsAnother) {
  ReplayLog log;
  lbfgs(log.record(live_function), start, box, {.max_iterations = 4});
  const Index length = log.num_live();
  ReplayLog other({log.evaluations().begin(), log.evaluations().end()});
  const Vector elsewhere = Vector::Constant(2, 0.25);
  const auto result = lbfgs(other.record(live_function), elsewhere, box);
  EXPECT_TRUE(result.converged());
  EXPECT_EQ(other.num_dropped(), length);
  EXPECT_EQ(other.num_replayed(), 0);
}

TEST(Replay, CallsBackAfterEachLiveEvaluationOnly) {
  ReplayLog log;
  Index calls = 0;
  const auto callback = [&](const ReplayLog& l) { EXPECT_EQ(l.num_live(), ++calls); };
  lbfgs(log.record(live_function, callback), start, box, {.max_iterations = 3});
  EXPECT_EQ(calls, log.num_live());
}

}  // namespace replay_test
}  // namespace mercer::optim
