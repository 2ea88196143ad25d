// The axes of a Hessian that may be indefinite, with curvatures that are not: where it is flat or
// bends the wrong way, so much that Newton's step has a given length at most.
#pragma once

#include "mercer/core/types.hpp"

namespace mercer::optim {

struct Axes {
  Matrix directions;  // orthonormal columns
  Vector curvature;   // positive
  Vector slope;       // the gradient along each
};

Axes positive_axes(const Matrix& hessian, const Vector& gradient, double longest_step);

}  // namespace mercer::optim
