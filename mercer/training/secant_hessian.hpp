// A Hessian that is corrected by what the gradient changed along the steps of a climb: the update
// of Broyden, Fletcher, Goldfarb and Shanno, which keeps it positive definite. The next climb, on
// more rows, begins with it at no cost.
#pragma once

#include <limits>

#include "mercer/optim/axes.hpp"

namespace mercer::training {

class SecantHessian {
 public:
  explicit SecantHessian(const Matrix& hessian) : hessian_(hessian) {}

  /// The next point of the climb.
  void add(const Vector& theta, const Vector& gradient) {
    if (hessian_.size() == 0 || !gradient.allFinite()) return;
    if (theta_.size() == 0) {
      const auto axes = optim::positive_axes(hessian_, gradient, kLongestAxis);
      hessian_ = axes.directions * axes.curvature.asDiagonal() * axes.directions.transpose();
    } else {
      update(theta - theta_, gradient - gradient_);
    }
    theta_ = theta;
    gradient_ = gradient;
  }
  const Matrix& hessian() const { return hessian_; }

 private:
  // Longest step of Newton's method along an axis, in log parameters.
  static constexpr double kLongestAxis = 1;

  void update(const Vector& s, const Vector& y) {
    const double sy = s.dot(y);
    if (!(sy > std::numeric_limits<double>::epsilon() * s.norm() * y.norm())) return;
    const Vector hs = hessian_ * s;
    hessian_ += y * y.transpose() / sy - hs * hs.transpose() / s.dot(hs);
  }

  Matrix hessian_;
  Vector theta_, gradient_;
};

}  // namespace mercer::training
