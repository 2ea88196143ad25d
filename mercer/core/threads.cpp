#include "mercer/core/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "mercer/core/error.hpp"

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
  const auto work = [&](int worker) {
    inside_parallel_loop = true;
    try {
      for (Index task = next++; task < count; task = next++) body(task, worker);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!first_error) first_error = std::current_exception();
      next = count;  // the other workers stop at their next task
    }
    inside_parallel_loop = false;
  };

#ifdef MERCER_STD_THREADS
  std::vector<std::thread> team;
  for (int worker = 1; worker < workers; ++worker) team.emplace_back(work, worker);
  work(0);
  for (auto& thread : team) thread.join();
#else
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) work(worker);
#endif
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace mercer
