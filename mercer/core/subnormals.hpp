// Numbers below the smallest normal one cost a hundred cycles each and never matter beside a sum.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace mercer {

/// While it lives, this thread's vector arithmetic takes subnormal numbers as zero (x86; elsewhere
/// it does nothing).
class NoSubnormals {
 public:
#if defined(__SSE2__)
  NoSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kInputsAreZero); }
  ~NoSubnormals() { _mm_setcsr(before_); }
#else
  NoSubnormals() {}
#endif
  NoSubnormals(const NoSubnormals&) = delete;
  NoSubnormals& operator=(const NoSubnormals&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushToZero = 0x8000, kInputsAreZero = 0x0040;
  unsigned before_;
#endif
};

}  // namespace mercer
