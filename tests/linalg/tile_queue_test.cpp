#include "mercer/linalg/detail/tile_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::linalg::detail {
namespace tile_queue_test {

using testing::WithThreads;

TEST(TileQueue, ATaskSeesTheTilesItWaitsFor) {
  constexpr Index count = 200;
  for (const int threads : {1, 2, 4}) {
    const WithThreads scope(threads);
    std::vector<Index> sums(count, -1);
    TileQueue queue(count, "adding");
    queue.run(count, [&](Index task) {
      if (task > 0) {
        ASSERT_TRUE(queue.wait_for(task - 1));
        ASSERT_TRUE(queue.wait_for(task / 2));
      }
      const auto i = static_cast<std::size_t>(task);
      sums[i] = task + (task > 0 ? sums[i - 1] : 0);
      queue.finish(task);
    });
    for (Index i = 0; i < count; ++i)
      EXPECT_EQ(sums[static_cast<std::size_t>(i)], i * (i + 1) / 2) << threads;
  }
}

TEST(TileQueue, AFailedTaskEndsThoseThatWaitForIt) {
  for (const int threads : {1, 2, 4}) {
    const WithThreads scope(threads);
    TileQueue queue(2, "adding");
    std::atomic<int> ended{0};
    EXPECT_THROW(queue.run(50,
                           [&](Index task) {
                             if (task == 0) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(2));
                               throw std::domain_error("the first");
                             }
                             if (queue.wait_for(1)) ++ended;
                           }),
                 std::domain_error);
    EXPECT_EQ(ended, 0);
  }
}

TEST(TileQueue, AWaitingTaskCanBeInterrupted) {
  const WithThreads scope(2);
  TileQueue queue(1, "waiting");
  const StopScope stop([] { return true; }, 0.001);
  // No task makes the tile.
  EXPECT_THROW(queue.run(2, [&](Index) { EXPECT_FALSE(queue.wait_for(0)); }), Interrupted);
}

}  // namespace tile_queue_test
}  // namespace mercer::linalg::detail
