#pragma once

namespace mercer::models {

/// "0.1.0", as in the build.
const char* version();

}  // namespace mercer::models
