// The starts of a climb on exact evidences, where that of the last one decides (no surrogate).
//   The start values climb on all of the given rows. Random starts climb on a third of them, where
//   an evaluation takes a 27th of the time, and go on with all where they promise more than is
//   known. Climbs end early; the Hessian of the third of the rows then ends the best of them with
//   Newton's steps, and says what is left to gain.
#pragma once

#include "mercer/training/search.hpp"

namespace mercer::training {

/// `share`: of all learning. Throws Interrupted.
optim::MinimizeResult best_of_starts(Search& search, const inference::Observations& rows,
                                     double share);

/// Whether the Hessian of `few` rows, by differences of gradients, costs less than it saves in a
/// climb on `more`.
bool hessian_pays(Index few, Index more, Index parameters);

}  // namespace mercer::training
