#include "mercer/core/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "mercer/core/error.hpp"

namespace mercer {
namespace threads_test {

class Threads : public ::testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(Threads, EveryTaskRunsOnceWithAWorkerInRange) {
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::vector<int> runs(1000, 0);  // tasks write to different places: no lock needed
    std::atomic<int> bad_workers{0};
    parallel_for(1000, [&](Index task, int worker) {
      ++runs[static_cast<std::size_t>(task)];
      if (worker < 0 || worker >= threads) ++bad_workers;
    });
    for (const int r : runs) ASSERT_EQ(r, 1);
    EXPECT_EQ(bad_workers, 0);
  }
}

TEST_F(Threads, TasksOfOneWorkerDoNotOverlap) {
  set_num_threads(4);
  std::vector<int> busy(4, 0);
  std::atomic<int> overlaps{0};
  parallel_for(400, [&](Index, int worker) {
    int& mine = busy[static_cast<std::size_t>(worker)];
    if (mine != 0) ++overlaps;
    mine = 1;
    volatile double sink = 0;
    for (int i = 0; i < 1000; ++i) sink = sink + std::sqrt(i);
    mine = 0;
  });
  EXPECT_EQ(overlaps, 0);
}

TEST_F(Threads, NoTasksIsNoCall) {
  parallel_for(0, [](Index, int) { FAIL() << "called"; });
}

TEST_F(Threads, AnExceptionReachesTheCallerAndTheNextLoopWorks) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    EXPECT_THROW(parallel_for(100,
                              [](Index task, int) {
                                if (task == 37) throw std::runtime_error("task 37");
                              }),
                 std::runtime_error);
    std::atomic<int> runs{0};
    parallel_for(100, [&](Index, int) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST_F(Threads, NestedLoopsRunSerially) {
  set_num_threads(4);
  std::atomic<int> inner_runs{0};
  std::atomic<int> other_workers{0};
  parallel_for(8, [&](Index, int) {
    parallel_for(8, [&](Index, int worker) {
      ++inner_runs;
      if (worker != 0) ++other_workers;
    });
  });
  EXPECT_EQ(inner_runs, 64);
  EXPECT_EQ(other_workers, 0);
}

TEST_F(Threads, CountMustBePositive) {
  EXPECT_THROW(set_num_threads(0), InvalidArgument);
  EXPECT_GE(num_threads(), 1);
}

}  // namespace threads_test
}  // namespace mercer
