#include "mercer/optim/line_search.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace mercer::optim {
namespace {

// The minimum of the cubic with the values and slopes of both points; NaN where it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double chord = 3 * (a.value - b.value) / (a.step - b.step);
  const double d1 = a.slope + b.slope - chord;
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
  return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

// Between the two, not too near to either.
double between(const LinePoint& low, const LinePoint& high) {
  constexpr double nearest = 0.1;
  const double width = high.step - low.step;
  const double guess = std::isfinite(high.value) ? cubic_minimum(low, high) : NAN;
  if (!std::isfinite(guess)) return low.step + 0.5 * width;
  const double first = low.step + nearest * width, last = high.step - nearest * width;
  return std::clamp(guess, std::min(first, last), std::max(first, last));
}

// Beyond `last`, where the function still falls steeply.
double beyond(const LinePoint& before, const LinePoint& last) {
  constexpr double least = 1.5, most = 5;
  const double guess = cubic_minimum(before, last);
  const double width = last.step - before.step;
  const double longest = last.step + most * width;
  if (!(guess > last.step)) return longest;
  return std::clamp(guess, last.step + least * width, longest);
}

}  // namespace

LinePoint line_search(const std::function<LinePoint(double)>& f, const LinePoint& start,
                      double first_step, const LineSearchOptions& options) {
  // `low` has the lowest value so far among steps that lower it enough; an acceptable step lies
  // between it and `high`.
  LinePoint low = start;
  std::optional<LinePoint> high;
  double step = first_step;
  for (int i = 0; i < options.most_trials; ++i) {
    const LinePoint trial = f(step);
    const double enough = start.value + options.decrease * step * start.slope;
    const LinePoint before = low;
    // To rounding, `enough` may be the value at the start: a step must gain something.
    if (!(trial.value <= enough) || trial.value >= low.value) {
      high = trial;
    } else {
      if (std::abs(trial.slope) <= -options.flatness * start.slope) return trial;
      const double toward_high = high ? high->step - low.step : 1.0;
      if (trial.slope * toward_high >= 0) high = low;
      low = trial;
    }
    step = high ? between(low, *high) : beyond(before, low);
    if (step == low.step || (high && step == high->step)) break;  // to rounding
  }
  return low;
}

}  // namespace mercer::optim
