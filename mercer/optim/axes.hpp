// The eigenvectors of a Hessian that may be indefinite, with positive curvatures. Where the Hessian
// is flat or negative, the curvature is raised until Newton's step has at most a given length.
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
