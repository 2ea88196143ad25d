#pragma once

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// "0.1.0", as in the build.
const char* version();

}  // namespace mercer
MERCER_API_END
