// What kernel conjugate gradients remember of one column besides its vectors.
#pragma once

#include <cmath>
#include <limits>

#include "mercer/core/types.hpp"

namespace mercer::krylov::detail {

/// The state of one column; it moves with its slot in the block.
struct KernelColumn {
  Index id = 0;          // column of y and alpha
  double objective = 0;  // P
  double gap = 0;        // P - D
  double relative_gap = 0;
  double gg = 0;    // <gradient, gradient> in the space of the method
  double eta = 0;   // weight of the last direction in the next one
  double gain = 0;  // largest |K gamma| / |gamma| seen, a lower bound of |K|
  int iterations = 0;
  bool fresh = true;   // the direction is the gradient, downhill
  bool exact = true;   // u is K alpha itself, not its recurrence
  bool stuck = false;  // no step along the direction lowers P
  bool ended = false;  // nor would any other, in double precision
  // Of the last look at progress.
  int seen_at = 0;
  double seen_objective = std::numeric_limits<double>::infinity();
  double seen_gap = std::numeric_limits<double>::infinity();

  bool finite() const { return std::isfinite(objective) && std::isfinite(gg); }
};

}  // namespace mercer::krylov::detail
