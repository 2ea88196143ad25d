// What a plan of memory counts of the threads.
#pragma once

namespace mercer {

/// Threads whose workspace is counted when memory is planned, whatever the machine has: a plan, and
/// so the bits of a result, must not depend on the number of threads. Each further thread takes
/// about half a megabyte more.
inline constexpr int kPlannedThreads = 8;

}  // namespace mercer
