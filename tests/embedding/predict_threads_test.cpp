// Several threads of a program ask one Predictor at the same time. Run by scripts/test also under
// the thread sanitizer.
#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

#include "mercer/core/threads.hpp"
#include "tests/embedding/answers.hpp"

namespace mercer::testing {
namespace {

struct Case {
  std::string name, likelihood;
  Index classes = 0;
  std::string solver = "cholesky", variance = "exact";
  Index joint_samples = 0;
};

class ConcurrentPredict : public ::testing::TestWithParam<Case> {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_P(ConcurrentPredict, HasTheBitsOfOneThread) {
  const Case& c = GetParam();
  set_num_threads(2);
  models::PredictOptions options;
  options.variance.method = c.variance;
  options.variance.joint_samples = c.joint_samples;
  options.variance.check_rows = c.variance == "exact" ? std::nullopt : std::optional<Index>(4);
  options.solver = c.solver;
  const auto model = fixed_model(c.likelihood, c.classes, c.solver);

  // Each thread has rows of its own; what one thread alone says of them is the reference.
  constexpr int callers = 4;
  std::vector<Matrix> rows;
  std::vector<std::vector<double>> expected, found(callers);
  const models::Predictor alone(model, options);
  for (int i = 0; i < callers; ++i) {
    rows.push_back(unit_square(20, static_cast<std::uint64_t>(10 + i)));
    expected.push_back(numbers_of(alone.predict(rows.back())));
  }

  // A new predictor, so that factors and draws are made while others wait for them.
  const models::Predictor shared(model, options);
  std::latch start(callers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      for (int repeat = 0; repeat < 3; ++repeat) found[i] = numbers_of(shared.predict(rows[i]));
    });
  for (auto& thread : threads) thread.join();

  for (std::size_t i = 0; i < callers; ++i) EXPECT_EQ(found[i], expected[i]) << "thread " << i;
}

INSTANTIATE_TEST_SUITE_P(Models, ConcurrentPredict,
                         ::testing::Values(Case{"factor", "gaussian"},
                                           Case{"solves", "gaussian", 0, "cg"},
                                           Case{"neighbours", "gaussian", 0, "cg", "vecchia"},
                                           Case{"draws", "gaussian", 0, "cg", "exact", 3},
                                           Case{"two_classes", "bernoulli-logit", 2},
                                           Case{"three_classes", "bernoulli-logit", 3},
                                           Case{"softmax", "softmax", 3},
                                           Case{"softmax_solves", "softmax", 3, "cg"}),
                         [](const auto& instance) { return instance.param.name; });

// Threads of the program that have loops of their own at the same time.
TEST(ConcurrentLoops, EveryTaskRunsOnce) {
  constexpr int callers = 4;
  constexpr Index tasks = 500;
  std::vector<std::vector<int>> runs(callers, std::vector<int>(tasks, 0));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers; ++i)
    threads.emplace_back([&, i] {
      parallel_for(tasks, [&](Index task, int) { ++runs[i][static_cast<std::size_t>(task)]; });
    });
  for (auto& thread : threads) thread.join();
  for (const auto& run : runs) EXPECT_EQ(run, std::vector<int>(tasks, 1));
}

}  // namespace
}  // namespace mercer::testing
