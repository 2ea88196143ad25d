// Bounds by a smooth change of variables: theta = middle + half sin(z / half).
//   Source: James & Roos (1975), MINUIT.
// Any z gives a theta inside the bounds, and around the middle the slope is 1, so that steps keep
// their meaning. A minimum beyond a bound becomes an ordinary quadratic minimum in z; a map with
// flat tails (tanh) would trap a search that overshoots.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

class Box {
 public:
  /// No bounds at all.
  Box() = default;
  /// lower <= theta <= upper, entry by entry: both finite or both infinite. Equal bounds fix theta.
  Box(Vector lower, Vector upper);

  bool bounded() const { return lower_.size() > 0; }
  const Vector& lower() const { return lower_; }
  const Vector& upper() const { return upper_; }

  Vector to_theta(ConstVectorView z) const;
  /// Of a theta inside.
  Vector to_z(ConstVectorView theta) const;
  /// dtheta/dz, entry by entry.
  Vector slope(ConstVectorView z) const;
  /// d2theta/dz2, entry by entry.
  Vector second_derivative(ConstVectorView z) const;
  /// theta moved inside by at least a thousandth of the width, where the slope is not zero.
  Vector inside(ConstVectorView theta) const;
  /// -1 within a thousandth of the width of the lower bound, +1 of the upper, 0 elsewhere.
  int hit(Index i, double theta) const;
  /// True when theta is at a bound that a move along `direction` would cross.
  bool blocks(Index i, double theta, double direction) const {
    return bounded() && hit(i, theta) * direction > 0;
  }
  void check_size(Index n) const;

 private:
  double half(Index i) const { return 0.5 * (upper_(i) - lower_(i)); }
  double middle(Index i) const { return 0.5 * (upper_(i) + lower_(i)); }
  bool free(Index i) const;

  Vector lower_, upper_;
};

}  // namespace mercer::optim
MERCER_API_END
