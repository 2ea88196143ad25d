#include "mercer/models/version.hpp"

namespace mercer::models {

const char* version() { return MERCER_VERSION; }

}  // namespace mercer::models
