// What a diagnostic is when nothing can be said.
#pragma once

#include <limits>

namespace mercer::diagnostics {

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

}  // namespace mercer::diagnostics
