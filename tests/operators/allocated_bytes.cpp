#include "tests/operators/allocated_bytes.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> in_use{0}, peak{0}, start{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const long now = in_use += static_cast<long>(malloc_usable_size(p));
  for (long seen = peak; now > seen && !peak.compare_exchange_weak(seen, now);) {
  }
  return p;
}

void release(void* p) {
  if (p != nullptr) in_use -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes == 0 ? 1 : bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(unit, (bytes + unit) / unit * unit));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace mercer::testing {

void restart_peak() {
  start = in_use.load();
  peak = in_use.load();
}

double peak_bytes() { return static_cast<double>(peak - start); }

}  // namespace mercer::testing
