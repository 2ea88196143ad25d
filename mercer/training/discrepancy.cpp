#include "mercer/training/discrepancy.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>

namespace mercer::training {
namespace {

// The corrected curvature F - B is at most so many times F.
constexpr double kMostShare = 4;

// B with the eigenvalues of F^-1/2 B F^-1/2 in [1 - kMostShare, 0].
Matrix limited(const Matrix& b, const Matrix& f) {
  const Eigen::GeneralizedSelfAdjointEigenSolver<Matrix> eigen(b, f);
  if (eigen.info() != Eigen::Success) return Matrix::Zero(b.rows(), b.cols());
  const Vector values = eigen.eigenvalues().cwiseMax(1 - kMostShare).cwiseMin(0.0);
  // V'F V = I and V'B V = diag, so that B = F V diag V'F.
  const Matrix fv = f * eigen.eigenvectors();
  return fv * values.asDiagonal() * fv.transpose();
}

}  // namespace

Discrepancy::Discrepancy(Index parameters)
    : at_(Vector::Zero(parameters)),
      c_(Vector::Zero(parameters)),
      b_(Matrix::Zero(parameters, parameters)) {}

void Discrepancy::observe(const Vector& theta, const Vector& difference,
                          const Matrix& information) {
  const Vector s = theta - at_;
  const Vector w = information * s;
  const double length = s.dot(w);
  if (known_ && length > 0) {
    // B += (s'y - s'B s) w w' / (s'w)^2: then s'B s = s'y.
    const double seen = std::min(s.dot(difference - c_), 0.0);
    b_ += (seen - s.dot(b_ * s)) / (length * length) * (w * w.transpose());
    b_ = limited(0.5 * (b_ + b_.transpose()), information);
  }
  replace(theta, difference);
}

void Discrepancy::replace(const Vector& theta, const Vector& difference) {
  at_ = theta;
  c_ = difference;
  known_ = true;
}

void Discrepancy::scale(double factor) {
  known_ = false;  // of other rows
  c_ *= factor;
  b_ *= factor;
}

double Discrepancy::integral(ConstVectorView theta) const {
  const Vector s = theta - at_;
  return c_.dot(s) + 0.5 * s.dot(b_ * s);
}

void Discrepancy::visit_state(Archive& archive) {
  archive.number("discrepancy_known", known_);
  archive.array("discrepancy_at", at_);
  archive.array("discrepancy", c_);
  archive.array("discrepancy_slope", b_);
}

}  // namespace mercer::training
