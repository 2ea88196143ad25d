#pragma once

namespace mercer {

/// "0.1.0", as in the build.
const char* version();

}  // namespace mercer
