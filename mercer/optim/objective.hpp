// The functions that are minimised: value returned, gradient filled in.
#pragma once

#include <functional>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

/// f(theta) and its gradient (same length). A value that is not finite, or NotPositiveDefinite
/// thrown, means that theta is out of the question; the search backs off.
using Objective = std::function<double(ConstVectorView theta, VectorView gradient)>;

}  // namespace mercer::optim
MERCER_API_END
