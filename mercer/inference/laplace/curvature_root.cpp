#include "mercer/inference/laplace/curvature_root.hpp"

#include <algorithm>

#include "mercer/core/error.hpp"

namespace mercer::inference {

CurvatureRoot::CurvatureRoot(const Curvature& curvature, Index points)
    : coupled_(curvature.coupled) {
  const Matrix& w = curvature.w;
  if (w.rows() != points) throw DimensionMismatch("curvature: rows", w.rows(), "points", points);
  if (w.cols() == 0 || !(w.minCoeff() >= 0) || !w.allFinite())
    throw InvalidArgument("the curvature of a likelihood must be finite and not negative");
  scale_ = w.cwiseSqrt();
  if (!coupled_) return;
  const Vector norm = scale_.rowwise().norm();
  direction_ = scale_;
  // A row without curvature has no direction, and R is zero there whatever q is.
  for (Index i = 0; i < points; ++i)
    if (norm(i) > 0) direction_.row(i) /= norm(i);
}

bool CurvatureRoot::operator==(const CurvatureRoot& other) const {
  return coupled_ == other.coupled_ && scale_.rows() == other.scale_.rows() &&
         scale_.cols() == other.scale_.cols() && scale_ == other.scale_;
}

Vector CurvatureRoot::block(Index c, Index d) const {
  Vector out = Vector::Zero(points());
  if (c == d) out = scale_.col(c).cwiseAbs2();
  if (coupled_)
    out.array() -= scale_.col(c).array() * direction_.col(c).array() * scale_.col(d).array() *
                   direction_.col(d).array();
  return out;
}

Matrix CurvatureRoot::along(ConstMatrixView v) const {
  const Index c = functions(), t = v.cols() / c;
  Matrix out = Matrix::Zero(points(), t);
  for (Index j = 0; j < v.cols(); ++j)
    out.col(j / c) += direction_.col(j % c).cwiseProduct(v.col(j));
  return out;
}

void CurvatureRoot::add_along(double factor, ConstMatrixView t, MatrixView out) const {
  const Index c = functions();
  for (Index j = 0; j < out.cols(); ++j)
    out.col(j) += factor * direction_.col(j % c).cwiseProduct(t.col(j / c));
}

void CurvatureRoot::apply(ConstMatrixView v, MatrixView out) const {
  const Index c = functions();
  if (!coupled_) {
    for (Index j = 0; j < v.cols(); ++j) out.col(j) = scale_.col(j % c).cwiseProduct(v.col(j));
    return;
  }
  out = v;
  add_along(-1.0, along(v), out);
  for (Index j = 0; j < v.cols(); ++j) out.col(j).array() *= scale_.col(j % c).array();
}

void CurvatureRoot::apply_transposed(ConstMatrixView v, MatrixView out) const {
  const Index c = functions();
  for (Index j = 0; j < v.cols(); ++j) out.col(j) = scale_.col(j % c).cwiseProduct(v.col(j));
  if (coupled_) add_along(-1.0, along(out), out);
}

Matrix CurvatureRoot::times(ConstMatrixView v) const {
  Matrix out(v.rows(), v.cols());
  apply(v, out);
  return out;
}

Matrix CurvatureRoot::transposed_times(ConstMatrixView v) const {
  Matrix out(v.rows(), v.cols());
  apply_transposed(v, out);
  return out;
}

}  // namespace mercer::inference
