// Who works on what, and when: the same for any number of threads.
//
// Blocks of points meet in pairs, in the rounds of a tournament: within a round no block plays
// twice, so pairs may run at once and add to the output of both blocks without locks, and each
// output receives its terms in the order of the rounds.
#pragma once

#include <functional>

#include "mercer/operators/detail/point_set.hpp"

namespace mercer::operators::detail {

/// A rectangle of the matrix: rows of one group against columns.
struct Unit {
  const RowGroup* group = nullptr;
  Index row_begin = 0;
  Index row_end = 0;
  Index column_begin = 0;
  Index column_end = 0;
  bool symmetric = false;  // stands for its mirror image too
};

/// Calls pair(i, j, slot, worker) for every i <= j once; slot < number of pairs in the round.
/// after_round(pairs) runs alone once the round is over.
void tournament(Index blocks, const std::function<void(Index, Index, Index, int)>& pair,
                const std::function<void(Index)>& after_round = {});

/// The units of block pair (i, j): together they cover the square (or half square) once.
void for_each_unit(const PointSet& points, Index i, Index j,
                   const std::function<void(const Unit&)>& visit);

}  // namespace mercer::operators::detail
