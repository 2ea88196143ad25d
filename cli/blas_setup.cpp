#include "cli/blas_setup.hpp"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "mercer/core/memory.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"

// Not part of the documented interface of OpenBLAS: absent (null) from some builds of it.
extern "C" {
void* blas_memory_alloc(int) __attribute__((weak));
void blas_memory_free(void*) __attribute__((weak));
}

namespace mercer::cli {

void restart_with_better_kernels(char** arguments) {
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  if (std::getenv(variable) != nullptr) return;
  const char* target = linalg::better_blas_target();
  if (target == nullptr || setenv(variable, target, 1) != 0) return;
  execv("/proc/self/exe", arguments);
}

void reserve_blas_buffers() {
  if (!address_space_left()) return;
  linalg::check_blas_memory();
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::vector<void*> buffers(static_cast<std::size_t>(num_threads()) + 1);
  for (auto& buffer : buffers) buffer = blas_memory_alloc(0);
  for (auto* buffer : buffers) blas_memory_free(buffer);
}

}  // namespace mercer::cli
