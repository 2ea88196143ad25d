#include "mercer/core/version.hpp"

namespace mercer {

const char* version() { return MERCER_VERSION; }

}  // namespace mercer
