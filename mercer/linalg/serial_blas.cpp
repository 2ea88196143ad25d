// OpenBLAS as a guest of the program that embeds mercer: which kernels it runs, on one thread, and
// inside a limit on address space. Only its documented interface is used, and no environment
// variable is changed; what the program `mercer` does beyond that is in cli/blas_setup.cpp.
#include "mercer/linalg/detail/serial_blas.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::linalg {

const char* blas_target() { return openblas_get_corename(); }

const char* better_blas_target() {
#if defined(__x86_64__) && defined(__GNUC__)
  constexpr std::array<std::string_view, 7> good = {
      "SkylakeX", "Cooperlake", "SapphireRapids", "Zen4", "Haswell", "Zen", "Excavator"};
  if (std::find(good.begin(), good.end(), blas_target()) != good.end()) return nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

void check_blas_memory() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto left = address_space_left();
    if (!left) return;
    const double need = blas_buffer_bytes * (num_threads() + 1);
    if (static_cast<double>(*left) < need)
      throw DoesNotFit(fmt::format(
          "the limit on address space (ulimit -v) leaves {}, but OpenBLAS wants {} for {} "
          "threads; raise the limit or use fewer `threads`",
          format_bytes(static_cast<double>(*left)), format_bytes(need), num_threads()));
  });
}

namespace detail {

SerialBlas::SerialBlas() {
  check_blas_memory();
  // openblas_get_parallel: 0 serial, 1 pthreads, 2 OpenMP.
  static const bool pthreads = openblas_get_parallel() == OPENBLAS_THREAD;
  if (pthreads && openblas_get_num_threads() != 1) openblas_set_num_threads(1);
}

}  // namespace detail
}  // namespace mercer::linalg
