// L-BFGS on the evidence of an approximation, on levels of more and more rows. Base points are
// chosen once among all rows that are learned from, where the exact climbs on few rows ended, and
// kept on all levels: the evidences of two levels differ by their rows alone.
//   Start: where the exact climbs ended. Where the first level then explains next to nothing, the
//   start values of the run are tried as well: few rows may lead to lengthscales that the base
//   points of many cannot follow.
//   Levels: nested random rows N_0 < N_1 < ... < N. A level begins with theta of the last and with
//   its Hessian per row, and is left when r G <= p/2 (r - 1), G what is left to gain there, r the
//   ratio of the rows and p the number of parameters: corrections.cpp says why. The last one ends
//   where 0.05 log units, or 1e-5 a row if that is more, are left by the model of L-BFGS, and any
//   where five steps gained less than 1e-5 a row. Block methods have blocks of the rows of the
//   level, as large as those of all rows.
//   The Hessian: of exact evidences on the few rows before, for the first level; then that one,
//   corrected by what gradients changed along the steps of each climb, or of the method's own
//   evidence by differences of gradients on levels of so few rows that this costs next to nothing,
//   and where there is no other.
//   A Hessian may promise too little: where the last step gained more than 0.5 log units, or where
//   the gradient promises more at a curvature of N/2, the climb goes on without it. On a level it
//   is what may be left there, if that is more than 0.5.
//   Cost: on protein with 1,000 base points 64 and 76 evaluations on the level of a quarter of the
//   rows and 12 and 16 on all rows (srm, fitc; measured with 2e-5 a row in place of 1e-5).
//   When not: an evaluation that costs the same on fewer rows (subset) gets no levels.
#pragma once

#include "mercer/training/search.hpp"

namespace mercer::training {

/// Rows of the levels before all, in order. `all` is the cost setting of all rows that are learned
/// from; `before`: rows of the exact climbs, 0 where there are none.
std::vector<Index> approximation_levels(const inference::InferenceInfo& method,
                                        const inference::CostSetting& all, Index before);

/// Evaluations that a level usually takes, with those for its Hessian; on all rows fewer where
/// there were levels before.
double usual_evaluations(Index level, Index all, Index parameters, bool after_levels);

/// The part of all learning that a climb is, for progress.
struct PartOfLearning {
  double begin = 0, end = 1;
};

/// From `start`; then, where that is asked for, with the base points moving as well. Throws
/// Interrupted.
Climbed climb_approximation(Search& search, const Vector& start, PartOfLearning part);

}  // namespace mercer::training
