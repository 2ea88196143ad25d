#include "mercer/core/background.hpp"

#include <utility>

#include "mercer/core/threads.hpp"

namespace mercer {

Background::~Background() {
  if (thread_.joinable()) thread_.join();
}

void Background::start(std::function<void()> task) {
  wait();
  task_ = std::move(task);
  if (num_threads() == 1) return;
  thread_ = std::thread([this] {
    try {
      task_();
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void Background::wait() {
  if (thread_.joinable()) {
    thread_.join();
    task_ = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  } else if (task_) {
    std::exchange(task_, nullptr)();
  }
}

}  // namespace mercer
