// One thread for OpenBLAS, and the kernels that the machine deserves.
//
// An OpenBLAS older than the processor does not know its model number and falls back to SSE
// kernels (0.3.21 on a 2023 Xeon: "Prescott", 3 times slower). When it has settled for less than
// the instruction sets at hand, and OPENBLAS_CORETYPE is not set, it is told to choose again.
//
// OpenBLAS maps a buffer for every thread that is inside it at the same time, and tries for ever
// when the system refuses. Under a limit on address space the buffers are therefore mapped at
// once, if they fit, and kept in its pool.
#include <cblas.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"

// In libraries built for many processors; absent (null) from those built for one.
extern "C" {
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
void* blas_memory_alloc(int) __attribute__((weak));
void blas_memory_free(void*) __attribute__((weak));
}

namespace mercer::linalg {
namespace {

/// The OpenBLAS core type to ask for; null when its own choice is fine.
const char* better_core() {
#if defined(__x86_64__) && defined(__GNUC__)
  constexpr std::array<std::string_view, 4> with_avx512 = {"SkylakeX", "Cooperlake",
                                                           "SapphireRapids", "Zen4"};
  constexpr std::array<std::string_view, 3> with_avx2 = {"Haswell", "Zen", "Excavator"};
  const std::string_view chosen = openblas_get_corename();
  const auto is_one_of = [&](const auto& names) {
    for (const auto name : names)
      if (name == chosen) return true;
    return false;
  };
  if (is_one_of(with_avx512) || is_one_of(with_avx2)) return nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

void choose_kernels_again() {
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return;
  if (std::getenv(variable) != nullptr) return;
  const char* core = better_core();
  if (core == nullptr) return;
  setenv(variable, core, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(variable);
}

constexpr double buffer_bytes = 128.0 * 1048576;  // of OpenBLAS on x86-64, the most it uses

void reserve_buffers() {
  const auto left = address_space_left();
  if (!left) return;
  const auto count = static_cast<std::size_t>(num_threads()) + 1;
  const double need = static_cast<double>(count) * buffer_bytes;
  if (static_cast<double>(*left) < need)
    throw DoesNotFit(fmt::format(
        "the limit on address space (ulimit -v) leaves {}, but OpenBLAS wants {} for {} "
        "threads; raise the limit or use fewer `threads`",
        format_bytes(static_cast<double>(*left)), format_bytes(need), num_threads()));
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::vector<void*> buffers(count);
  for (auto& buffer : buffers) buffer = blas_memory_alloc(0);
  for (auto* buffer : buffers) blas_memory_free(buffer);
}

}  // namespace

void use_serial_blas() {
  static std::once_flag once;
  std::call_once(once, [] {
    reserve_buffers();
    choose_kernels_again();
    openblas_set_num_threads(1);
  });
  // The OpenMP flavour keeps the number per calling thread (core/threads.cpp sees to its own).
  thread_local const bool told = (openblas_set_num_threads(1), true);
  static_cast<void>(told);
}

const char* blas_target() {
  use_serial_blas();
  return openblas_get_corename();
}

}  // namespace mercer::linalg
