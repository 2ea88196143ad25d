#include "mercer/core/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/openmp.hpp"

namespace mercer {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{usable_cores()};
  return count;
}

thread_local bool inside_parallel_loop = false;

// Waits a few microseconds awake, because loops often follow each other closely, then asleep: on a
// busy machine a team that spins (as OpenMP's does by default) takes the processor from the very
// threads it waits for.
template <class Done>
void wait_until(std::mutex& mutex, std::condition_variable& changed, const Done& done) {
  constexpr int tries = 200;
  for (int i = 0; i < tries; ++i) {
    if (done()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, done);
}

/// Threads that live as long as the process and run one loop at a time.
class Team {
 public:
  /// Calls work(worker) for worker = 0 .. workers - 1, the first of them here.
  template <class Work>
  void run(int workers, const Work& work) {
    const std::lock_guard one_loop_at_a_time(loop_mutex_);
    while (static_cast<int>(threads_.size()) < workers - 1) {
      const int worker = static_cast<int>(threads_.size()) + 1;
      threads_.emplace_back([this, worker, seen = generation_.load()] { serve(worker, seen); });
    }
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      call_ = [](const void* w, int worker) { (*static_cast<const Work*>(w))(worker); };
      workers_ = workers;
      busy_ = static_cast<int>(threads_.size());
      ++generation_;
    }
    started_.notify_all();
    work(0);
    wait_until(mutex_, finished_, [this] { return busy_.load() == 0; });
  }

 private:
  void serve(int worker, std::uint64_t seen) {
    const SerialOpenMp serial;  // tasks may call OpenBLAS
    for (;;) {
      wait_until(mutex_, started_, [&] { return generation_.load() != seen; });
      seen = generation_.load();
      if (worker < workers_) call_(work_, worker);
      if (--busy_ == 0) {
        const std::lock_guard lock(mutex_);  // the waiter is either awake or already waiting
        finished_.notify_one();
      }
    }
  }

  std::mutex loop_mutex_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> busy_{0};
  const void* work_ = nullptr;  // a loop's work and how to call it: no allocation per loop
  void (*call_)(const void*, int) = nullptr;
  int workers_ = 0;
  std::vector<std::thread> threads_;
};

// Never destroyed: its threads sleep until the process ends.
std::atomic<Team*> current_team{nullptr};

Team& team() {
  Team* found = current_team.load();
  if (found != nullptr) return *found;
  auto fresh = std::make_unique<Team>();
  if (!current_team.compare_exchange_strong(found, fresh.get())) return *found;
  return *fresh.release();
}

// fork() copies the thread that calls it and no other: in the child the team of the parent has no
// threads, and its mutexes may be locked for ever. The child starts a team of its own when it first
// needs one.
[[maybe_unused]] const int fork_handler =
    pthread_atfork(nullptr, nullptr, [] { current_team.store(nullptr); });

}  // namespace

int num_threads() { return thread_count().load(); }

void set_num_threads(int count) {
  if (count < 1) throw InvalidArgument("threads: the number of threads must be at least 1");
  thread_count().store(count);
}

void parallel_for(Index count, const std::function<void(Index, int)>& body) {
  const int workers = static_cast<int>(std::min<Index>(num_threads(), count));
  if (workers <= 1 || inside_parallel_loop) {
    for (Index task = 0; task < count; ++task) body(task, 0);
    return;
  }

  std::atomic<Index> next{0};
  std::exception_ptr first_error;
  std::mutex error_mutex;
  team().run(workers, [&](int worker) {
    inside_parallel_loop = true;
    try {
      for (Index task = next++; task < count; task = next++) body(task, worker);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!first_error) first_error = std::current_exception();
      next = count;  // the other workers stop at their next task
    }
    inside_parallel_loop = false;
  });
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace mercer
