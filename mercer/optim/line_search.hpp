// A step along a descent direction that satisfies the strong Wolfe conditions, by bracketing and
// cubic interpolation.
//   Source: Nocedal & Wright (2006), algorithms 3.5 and 3.6.
//   Cost:   one evaluation with its slope per trial; the first trial usually suffices.
//   A value that is not finite counts as one that is too high: the step is halved.
#pragma once

#include <functional>

#include "mercer/core/types.hpp"

namespace mercer::optim {

/// The function and its derivative along the line, at this step.
struct LinePoint {
  double step = 0;
  double value = 0;
  double slope = 0;
};

struct LineSearchOptions {
  double decrease = 1e-4;  // value <= value(0) + decrease step slope(0)
  double flatness = 0.9;   // |slope| <= flatness |slope(0)|
  int most_trials = 30;
};

/// The first trial is `first_step`. Step 0 when no trial lowers the value enough; a step that
/// lowers it but is not flat enough when the trials run out.
LinePoint line_search(const std::function<LinePoint(double)>& f, const LinePoint& start,
                      double first_step, const LineSearchOptions& options = {});

}  // namespace mercer::optim
