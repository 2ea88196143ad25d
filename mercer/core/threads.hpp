// The one place where mercer runs in parallel. A loop is cut into tasks whose number and order of
// summation do not depend on the number of threads, so that results are the same bits on any.
//
// Any thread may call parallel_for, also several at the same time: while one has the team, the
// loops of the others run in their own thread. A child of fork() starts a team of its own; fork
// while no other thread is inside mercer.
#pragma once

#include <functional>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Threads used by parallel_for; starts as the number of cores this process may use.
int num_threads();
/// At least 1. Not to be called while a parallel loop runs.
void set_num_threads(int count);

/// Calls body(task, worker) for task = 0 .. count - 1, each once, in any order;
/// worker < num_threads() names the scratch space to use. Tasks may not write to the same place.
/// The first exception thrown by a task is thrown again here. Nested calls run serially.
void parallel_for(Index count, const std::function<void(Index task, int worker)>& body);

}  // namespace mercer
MERCER_API_END
