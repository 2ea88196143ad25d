// Rows with the same inputs become one row at their mean, with less noise: the same posterior and,
// through Replicates, the same likelihood, from fewer rows (inference/observations.hpp has the
// formulas).
//   Cost: O(N d), by a hash of the rows.
//   When not: rows with known noise are left as they are. Their noise variances are not in
//           proportion when s2 changes, so that no one weighted mean serves all s2.
#pragma once

#include "mercer/inference/observations.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// Rows that were not merged before, on the scale of the model. Those that stay are in their order,
/// each in the place of the first of its kind.
inference::Observations merge_replicates(inference::Observations data);

}  // namespace mercer::models
MERCER_API_END
