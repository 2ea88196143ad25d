#include "mercer/core/stop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/progress.hpp"
#include "mercer/core/threads.hpp"

namespace mercer {
namespace stop_test {

using namespace std::chrono_literals;

class Stop : public ::testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(Stop, WithoutAScopeNothingStops) {
  EXPECT_FALSE(stop_requested());
  EXPECT_NO_THROW(stop_if_requested("counting"));
}

TEST_F(Stop, ALoopEndsAtTheNextTaskAndTheNextLoopIsWhole) {
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::atomic<int> runs{0};
    {
      const StopScope scope([&] { return runs >= 10; }, 0);
      const auto loop = [&] {
        parallel_for(100000, [&](Index, int) {
          ++runs;
          std::this_thread::sleep_for(20us);
        });
      };
      EXPECT_THROW(loop(), Interrupted);
    }
    // Every worker may be in the middle of a task, and another may begin before it is told; the
    // machine may also give the thread that asks no time for a while.
    EXPECT_LT(runs, 50000) << threads;
    runs = 0;
    parallel_for(100, [&](Index, int) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST_F(Stop, OnlyTheThreadThatMadeTheScopeAsks) {
  set_num_threads(4);
  const auto me = std::this_thread::get_id();
  std::atomic<int> strangers{0}, questions{0};
  const StopScope scope(
      [&] {
        ++questions;
        strangers += std::this_thread::get_id() != me;
        return false;
      },
      0);
  parallel_for(200, [&](Index, int) {
    stop_if_requested("counting");
    std::this_thread::sleep_for(10us);
  });
  EXPECT_GT(questions, 0);
  EXPECT_EQ(strangers, 0);
}

TEST_F(Stop, WorkInsideATaskOfAnotherThreadEndsToo) {
  set_num_threads(2);
  std::atomic<bool> enough{false};
  const StopScope scope([&] { return enough.load(); }, 0);
  // One of the two tasks ends at once, the other goes on until it is told; which of them the
  // caller's thread takes is left open.
  std::atomic<int> first{0};
  const auto loop = [&] {
    parallel_for(2, [&](Index, int) {
      if (first++ == 0) {
        for (;;) {
          stop_if_requested("spinning");
          std::this_thread::sleep_for(100us);
          enough = true;
        }
      }
    });
  };
  EXPECT_THROW(loop(), Interrupted);
}

TEST_F(Stop, ScopesNestAndTheOuterOneStillCounts) {
  bool outer_stops = false;
  const StopScope outer([&] { return outer_stops; }, 0);
  {
    const StopScope inner([] { return false; }, 0);
    EXPECT_FALSE(stop_requested());
    outer_stops = true;
    EXPECT_TRUE(stop_requested());
    outer_stops = false;
  }
  const StopScope inner([] { return true; }, 0);
  EXPECT_TRUE(stop_requested());
}

TEST_F(Stop, AShortChangeIsMadeWhole) {
  const StopScope scope([] { return true; }, 0);
  {
    const Uninterrupted whole;
    EXPECT_FALSE(stop_requested());
    EXPECT_NO_THROW(parallel_for(10, [](Index, int) {}));
  }
  EXPECT_TRUE(stop_requested());
}

TEST_F(Stop, AsksNoMoreOftenThanItIsTold) {
  int questions = 0;
  const StopScope scope(
      [&] {
        ++questions;
        return false;
      },
      3600);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(stop_requested());
  EXPECT_EQ(questions, 0);
  EXPECT_FALSE(stop_requested(/*now=*/true));
  EXPECT_EQ(questions, 1);
}

TEST_F(Stop, TwoThreadsAreStoppedEachByItsOwnScope) {
  set_num_threads(2);
  std::atomic<bool> stop_first{false};
  std::atomic<bool> first_was_stopped{false}, second_was_stopped{false};
  const auto work = [](const std::atomic<bool>& stop, std::atomic<bool>& stopped, int tasks) {
    const StopScope scope([&] { return stop.load(); }, 0);
    try {
      parallel_for(tasks, [](Index, int) { std::this_thread::sleep_for(100us); });
    } catch (const Interrupted&) {
      stopped = true;
    }
  };
  const std::atomic<bool> never{false};
  std::thread first([&] { work(stop_first, first_was_stopped, 1000000); });
  std::thread second([&] { work(never, second_was_stopped, 500); });
  std::this_thread::sleep_for(20ms);
  stop_first = true;
  first.join();
  second.join();
  EXPECT_TRUE(first_was_stopped);
  EXPECT_FALSE(second_was_stopped);
}

TEST_F(Stop, ALoopDoesNotWaitForTheLoopOfAnotherCaller) {
  set_num_threads(2);
  std::atomic<bool> started{false}, finish{false};
  std::thread other([&] {
    parallel_for(2, [&](Index, int) {
      started = true;
      while (!finish) std::this_thread::sleep_for(100us);
    });
  });
  while (!started) std::this_thread::sleep_for(100us);
  int runs = 0;  // one after the other in this thread: no lock needed
  parallel_for(100, [&](Index, int worker) {
    EXPECT_EQ(worker, 0);
    ++runs;
  });
  EXPECT_EQ(runs, 100);
  finish = true;
  other.join();
}

TEST_F(Stop, AnObservedCallRepeatsTheLastProgressBetweenTiles) {
  std::vector<Progress> told;
  const ProgressCallback callback = [&](const Progress& p) {
    told.push_back(p);
    return p.between_tiles ? Action::stop : Action::proceed;
  };
  const ObservedCall call(callback, 0);
  call.progress()({"solve", 0.5, "iteration 3", true});
  EXPECT_THROW(parallel_for(3, [](Index, int) {}), Interrupted);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_FALSE(told[0].between_tiles);
  EXPECT_TRUE(told[1].between_tiles);
  EXPECT_EQ(told[1].stage, "solve");
  EXPECT_EQ(told[1].detail, "iteration 3");
  EXPECT_TRUE(told[1].ends_stage);
}

TEST_F(Stop, AnObservedCallWithoutACallbackIsNone) {
  const ObservedCall call({}, 0);
  EXPECT_FALSE(call.progress());
  EXPECT_NO_THROW(parallel_for(3, [](Index, int) {}));
}

// The buffers of a product are in use while its question is asked.
TEST_F(Stop, AQuestionMayNotCompute) {
  set_num_threads(2);
  const StopScope scope(
      [] {
        parallel_for(4, [](Index, int) {});
        return false;
      },
      0.0);
  EXPECT_THROW(parallel_for(100, [](Index, int) {}), InvalidArgument);
  EXPECT_FALSE(inside_question());
}

}  // namespace stop_test
}  // namespace mercer
