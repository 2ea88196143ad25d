#include "mercer/core/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/openmp.hpp"
#include "mercer/core/stop.hpp"

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
// threads it waits for. A waiter with something to `watch` wakes up for it now and then.
template <class Done, class Watch = std::nullptr_t>
void wait_until(std::mutex& mutex, std::condition_variable& changed, const Done& done,
                const Watch& watch = nullptr) {
  constexpr int tries = 200;
  for (int i = 0; i < tries; ++i) {
    if (done()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  std::unique_lock lock(mutex);
  if constexpr (std::is_null_pointer_v<Watch>) {
    changed.wait(lock, done);
  } else {
    const std::chrono::duration<double> pause(kSecondsBetweenQuestions);
    while (!changed.wait_for(lock, pause, done)) {
      lock.unlock();
      watch();
      lock.lock();
    }
  }
}

/// Threads that live as long as the process and run one loop at a time.
class Team {
 public:
  /// Calls work(0) here and work(worker), worker < workers, in those threads that come before it
  /// has returned; watch() now and then while they are not done. False, and nothing is done, when
  /// another caller has the team.
  template <class Work, class Watch>
  bool run(int workers, const Work& work, const Watch& watch) {
    const std::unique_lock one_loop_at_a_time(loop_mutex_, std::try_to_lock);
    if (!one_loop_at_a_time) return false;
    while (static_cast<int>(threads_.size()) < workers - 1) {
      const int worker = static_cast<int>(threads_.size()) + 1;
      threads_.emplace_back([this, worker, seen = generation_.load()] { serve(worker, seen); });
    }
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      call_ = [](const void* w, int worker) { (*static_cast<const Work*>(w))(worker); };
      workers_ = workers;
      open_ = true;
      ++generation_;
    }
    started_.notify_all();
    work(0);
    {
      // Nothing is left to take: who has not come yet, on a busy machine, is not waited for.
      const std::lock_guard lock(mutex_);
      open_ = false;
    }
    wait_until(
        mutex_, finished_, [this] { return busy_.load() == 0; }, watch);
    return true;
  }

 private:
  void serve(int worker, std::uint64_t seen) {
    const SerialOpenMp serial;  // tasks may call OpenBLAS
    for (;;) {
      wait_until(mutex_, started_, [&] { return generation_.load() != seen; });
      {
        const std::lock_guard lock(mutex_);
        seen = generation_.load();
        if (!open_ || worker >= workers_) continue;
        ++busy_;
      }
      call_(work_, worker);
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
  std::atomic<int> busy_{0};    // threads inside the loop, that of its caller left out
  bool open_ = false;           // others may still join the loop
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
  if (inside_question())
    throw InvalidArgument(
        "a progress callback called mercer between two tiles of a computation; let it note what it "
        "wants to know and compute that after it has returned");
  const auto one_after_the_other = [&] {
    for (Index task = 0; task < count; ++task) {
      stop_if_requested("computing");
      body(task, 0);
    }
  };
  const int workers = static_cast<int>(std::min<Index>(num_threads(), count));
  if (workers <= 1 || inside_parallel_loop) return one_after_the_other();

  stop_if_requested("computing");  // the others may take all tasks before this thread takes one
  std::atomic<Index> next{0};
  std::atomic<bool> over{false};  // what still runs is for nothing
  std::exception_ptr first_error;
  std::mutex error_mutex;
  const auto fail = [&] {
    const std::lock_guard lock(error_mutex);
    if (!first_error) first_error = std::current_exception();
    over = true;
    next = count;  // the other workers stop at their next task
  };
  const auto work = [&](int worker) {
    // The calling thread asks its own scopes; the other threads ask whether the loop is over.
    std::optional<LoopMember> member;
    if (worker > 0) member.emplace(over);
    inside_parallel_loop = true;
    try {
      for (Index task = next++; task < count; task = next++) {
        stop_if_requested("computing");
        body(task, worker);
      }
    } catch (...) {
      fail();
    }
    inside_parallel_loop = false;
  };
  const auto watch = [&] {
    try {
      if (!over) stop_if_requested("computing");
    } catch (...) {
      fail();
    }
  };
  // Another caller's loop may be a long one: this one does not wait for it, and sums the same.
  if (!team().run(workers, work, watch)) return one_after_the_other();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace mercer
