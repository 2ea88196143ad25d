#include "mercer/linalg/detail/tile_queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "mercer/core/stop.hpp"
#include "mercer/core/subnormals.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::linalg::detail {
namespace {

// A tile takes some ten microseconds: first awake, then letting others run, then asleep, because on
// a busy machine the thread that is waited for may not be running at all.
constexpr int kTriesAwake = 2000, kTriesYielding = 2100;
constexpr std::chrono::microseconds kNap(50);

void pause(int tries) {
  if (tries >= kTriesYielding)
    std::this_thread::sleep_for(kNap);
  else if (tries >= kTriesAwake)
    std::this_thread::yield();
#if defined(__x86_64__)
  else
    __builtin_ia32_pause();
#endif
}

}  // namespace

TileQueue::TileQueue(Index tiles, const char* doing)
    : doing_(doing), done_(new std::atomic<bool>[static_cast<std::size_t>(tiles)]()) {}

bool TileQueue::wait_for(Index tile) const {
  const auto& done = done_[static_cast<std::size_t>(tile)];
  for (int tries = 0; !done.load(); ++tries) {
    if (failed_.load()) return false;
    if (tries >= kTriesAwake) {
      stop_if_requested(doing_);
      tries = std::min(tries, kTriesYielding);
    }
    pause(tries);
  }
  return true;
}

void TileQueue::run(Index count, const std::function<void(Index)>& body) {
  parallel_for(std::min<Index>(num_threads(), count), [&](Index, int) {
    const NoSubnormals flushed;
    try {
      for (Index task = next_++; task < count && !failed_.load(); task = next_++) {
        stop_if_requested(doing_);
        body(task);
      }
    } catch (...) {
      failed_.store(true);
      throw;
    }
  });
}

}  // namespace mercer::linalg::detail
