// K ~ F F': what the low-rank approximations of a kernel matrix have in common.
#pragma once

#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

struct LowRank {
  Matrix factor;                // F, N x rank
  std::vector<Index> pivots;    // the points whose columns were used, in order
  double trace = 0;             // of K
  double trace_error = 0;       // of K - F F'
  Index columns_evaluated = 0;  // columns of K computed (N kernel values each)
  double kernel_values = 0;     // entries of K computed
  double products = 0;          // single-column products with the whole K
  Index clipped = 0;            // directions of the columns left out as rounding error
  bool exhausted = false;       // nothing of K was left, to rounding, before the rank asked for
  Index rank() const { return factor.cols(); }
};

}  // namespace mercer::approximations
MERCER_API_END
