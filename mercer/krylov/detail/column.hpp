// What a solver remembers of one right-hand side besides its vectors.
#pragma once

#include <cmath>
#include <limits>

#include "mercer/core/types.hpp"

namespace mercer::krylov::detail {

/// The state of one right-hand side; it moves with its slot in the block.
struct Column {
  Index id = 0;       // column of b and x
  double scale = 1;   // a power of two: the column solves A (scale x) = scale b
  double norm_b = 0;  // |scale b|
  double target = 0;  // stop when |r| falls to it
  double rr = 0;      // <r, r>
  double g = 0;       // <r, z>; <r, p> with a window of directions
  double alpha = 0, beta = 0;
  int iterations = 0;
  int directions = 0;     // taken since the last fresh one (flexible CG)
  bool fresh = true;      // the next direction starts anew from r
  bool exact = true;      // the residual is that of b - A x, not what the method believes
  bool checking = false;  // its slot of the next product holds x instead of p
  bool claimed = false;   // checking because the method says converged
  bool broken = false;    // no step could be taken: <p, A p> <= 0, not finite, ...
  int checked_at = 0;     // iteration of the last check
  double checked = 0;     // |r| found then
  double moved = 0;       // and how far it was from what the method believed
  int halved_at = 0;      // iteration of the last check that halved the true residual
  double halved = std::numeric_limits<double>::infinity();
  int poor_checks = 0;  // in a row: no halving, and the recurrence had lost touch
  // Low-precision products only: |b - A x - r| is about drift * path.
  double path = 0;   // sum of |alpha p| since the last check
  double gain = 0;   // largest |q| / |p| seen, a lower bound of |A|
  double drift = 0;  // measured at the last check; 0 before

  double residual() const { return std::sqrt(rr); }
  double relative() const { return norm_b > 0 ? residual() / norm_b : 0.0; }
};

}  // namespace mercer::krylov::detail
