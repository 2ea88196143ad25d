// A low-rank approximation of K made invertible: F F' + D through Woodbury, and its report. What
// the low-rank preconditioners have in common.
#pragma once

#include <string>

#include "mercer/approximations/low_rank.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

/// P = F F' + D; throws unless D is positive. `notes` opens the report's; each note ends with "; ".
/// F and D are the rows of `space` that are held here.
Built build_low_rank(approximations::LowRank approximation, const linalg::Diagonal& d,
                     const linalg::RowSpace& space, std::string notes);

/// "nothing of K was left after rank 21; " when that is so.
std::string exhausted_note(const approximations::LowRank& approximation);

/// The landmarks that the options ask for, k-means++ when they leave it open. Leverage scores know
/// one noise for all points: the harmonic mean.
approximations::LandmarkOptions landmark_options(const Target& target,
                                                 const PreconditionerOptions& options);
/// For the planner: of N points, which says nothing of the noise.
approximations::LandmarkOptions landmark_options(Index n, const PreconditionerOptions& options);
/// What Nystrom with these landmarks and Woodbury after it cost.
Cost nystrom_cost(Index n, const approximations::LandmarkOptions& landmarks);

}  // namespace mercer::preconditioners
