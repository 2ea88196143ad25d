// The minimum of a convex function of one variable along a direction of descent: Newton steps kept
// inside a bracket.
#pragma once

#include <cmath>
#include <limits>

namespace mercer::krylov::detail {

/// phi(s), phi'(s), phi''(s).
struct Trial {
  double value, slope, curvature;
};

/// s > 0 with |phi'(s)| <= 1e-3 |phi'(0)| and phi(s) <= phi(0) + 1e-4 s phi'(0); after 30 trials
/// the largest s tried left of the minimum, where phi is below phi(0) because it is convex; 0 when
/// there is none. phi(s) is called once per trial.
template <class Phi>
double convex_search(const Phi& phi) {
  constexpr double slope_reduction = 1e-3, armijo = 1e-4;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr int max_trials = 30;
  const Trial start = phi(0.0);
  if (!(start.slope < 0) || !(start.curvature > 0)) return 0.0;
  // Near the minimum phi moves by less than its own rounding; the slope still knows the way.
  const double rounding = 8 * std::numeric_limits<double>::epsilon() * std::abs(start.value);
  double low = 0, high = infinite, s = -start.slope / start.curvature;
  for (int trial = 0; trial < max_trials && std::isfinite(s); ++trial) {
    const Trial at = phi(s);
    if (std::abs(at.slope) <= slope_reduction * -start.slope &&
        at.value <= start.value + armijo * s * start.slope + rounding)
      return s;
    (at.slope < 0 ? low : high) = s;  // what is not a number counts as too far
    // A flat stretch makes Newton's step long: no more than tenfold at a time.
    double next = std::fmin(s - at.slope / at.curvature, 10 * s);
    if (!(next > low && next < high)) next = high < infinite ? 0.5 * (low + high) : 10 * s;
    if (next == s) break;
    s = next;
  }
  return low;
}

}  // namespace mercer::krylov::detail
