// How many chains compute at the same time: what memory is planned for.
#pragma once

#include "mercer/core/types.hpp"

namespace mercer::training {

/// Chains run side by side up to so many rows; of more, the parallel loops inside an evaluation are
/// long enough, and one evaluation at a time takes less memory.
inline constexpr Index kSideBySideRows = 2000;

}  // namespace mercer::training
