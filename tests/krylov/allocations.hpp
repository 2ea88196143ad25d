// Counts allocations of the test program, to show that iterations make none.
#pragma once

namespace mercer::testing {
long allocation_count();
}
