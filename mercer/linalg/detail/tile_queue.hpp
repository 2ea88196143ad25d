// Tasks on the tiles of a matrix, taken by threads in one fixed order; a task waits for the tiles
// that earlier tasks make. One parallel loop serves a whole factorisation: no barrier after each
// column of tiles, and while one thread factors a diagonal tile the others go on.
//   Source: the static scheduling of PLASMA (Kurzak, Buttari, Dongarra 2008).
//   A task waits only for tasks before it in the order, so the first that is not finished can
//   always run, on any number of threads. Every tile is made by one task: the bits do not depend on
//   who runs it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "mercer/core/types.hpp"

namespace mercer::linalg::detail {

class TileQueue {
 public:
  /// `doing` is what was interrupted when a StopScope asks for that.
  TileQueue(Index tiles, const char* doing);

  /// Calls body(task) for task = 0 .. count - 1, taken in this order. The first exception thrown by
  /// a task is thrown again here, after the others have ended.
  void run(Index count, const std::function<void(Index task)>& body);
  /// To be called by tasks. False: another task has failed, and this one must return.
  [[nodiscard]] bool wait_for(Index tile) const;
  void finish(Index tile) { done_[static_cast<std::size_t>(tile)].store(true); }

 private:
  const char* doing_;
  std::unique_ptr<std::atomic<bool>[]> done_;
  std::atomic<Index> next_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace mercer::linalg::detail
