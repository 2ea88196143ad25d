#include "mercer/optim/axes.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>

namespace mercer::optim {
namespace {

constexpr double kFlat = 1e-8;  // curvatures below this share of the largest are none

}  // namespace

Axes positive_axes(const Matrix& hessian, const Vector& gradient, double longest_step) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(hessian);
  Axes out{eigen.eigenvectors(), eigen.eigenvalues(), {}};
  out.slope = out.directions.transpose() * gradient;
  const double least = kFlat * std::max(out.curvature.cwiseAbs().maxCoeff(), kFlat);
  out.curvature = out.curvature.cwiseMax(out.slope.cwiseAbs() / longest_step).cwiseMax(least);
  return out;
}

}  // namespace mercer::optim
