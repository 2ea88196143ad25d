// A limit on address space (ulimit -v) that OpenBLAS cannot start under.
//
// OpenBLAS maps a buffer per core when it is loaded, before main, and tries for ever when the
// system refuses. Functions in .preinit_array of a program run before those of its libraries: the
// one place where this can be said instead. Nothing of the C++ library may be used here.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cli/exit_code.hpp"

namespace {

void refuse_small_address_space(int, char**, char** environment) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  long threads = sysconf(_SC_NPROCESSORS_ONLN);
  constexpr const char* name = "OMP_NUM_THREADS=";
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, std::strlen(name)) != 0) continue;
    const long asked = std::strtol(*entry + std::strlen(name), nullptr, 10);
    if (asked > 0 && asked < threads) threads = asked;
  }
  // 128 MiB for each buffer; the program with its libraries is 45 MiB.
  const rlim_t need = (static_cast<rlim_t>(threads > 0 ? threads : 1) * 128 + 64) << 20U;
  if (limit.rlim_cur >= need) return;
  constexpr const char* message =
      "mercer: the limit on address space (ulimit -v) is too small for OpenBLAS to start, which "
      "maps "
      "128 MiB per core; raise the limit, or set OMP_NUM_THREADS=1\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(mercer::cli::exit_memory);
}

using Preinit = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Preinit before_libraries =
    refuse_small_address_space;

}  // namespace
