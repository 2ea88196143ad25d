// A task beside the calling thread: input that is read while the caller computes. Loops run in
// parallel by threads.hpp only.
#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace mercer {

/// With num_threads() = 1 the task runs inside wait(), in the calling thread.
class Background {
 public:
  Background() = default;
  /// Waits for the task; what that threw is lost.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// One at a time: after wait().
  void start(std::function<void()> task);
  /// Until the task has ended; throws what it threw. Without a task it returns at once.
  void wait();

 private:
  std::function<void()> task_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace mercer
