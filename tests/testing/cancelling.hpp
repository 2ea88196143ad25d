// Long work that is cancelled between tiles: it must end at once, by Interrupted.
#pragma once

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::testing {

/// Cancels `work` at its first tile, in the middle and near its end, and checks that it asked no
/// more after it was told to stop. Returns the number of times that a whole run asks.
template <class Work>
int expect_cancellable(const Work& work) {
  const int threads = num_threads();
  set_num_threads(1);  // all tiles are the caller's: as many questions every time
  int total = 0;
  {
    const StopScope counting(
        [&] {
          ++total;
          return false;
        },
        0);
    work();
  }
  for (const double share : {0.0, 0.5, 0.9}) {
    const int stop_at = 1 + static_cast<int>(share * (total - 1));
    int asked = 0;
    const StopScope scope([&] { return ++asked >= stop_at; }, 0);
    EXPECT_THROW(work(), Interrupted) << "cancelled at tile " << stop_at << " of " << total;
    EXPECT_EQ(asked, stop_at) << "it went on after it was told to stop";
  }
  set_num_threads(2);
  {
    const StopScope scope([] { return true; }, 0);
    EXPECT_THROW(work(), Interrupted);
  }
  set_num_threads(threads);
  return total;
}

}  // namespace mercer::testing
