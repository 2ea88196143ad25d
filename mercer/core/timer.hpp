#pragma once

#include <chrono>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Wall-clock seconds since construction.
class Timer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mercer
MERCER_API_END
