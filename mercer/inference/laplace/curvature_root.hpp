// The curvature W of a likelihood at a mode and its root R, W = R R', row by row of N points with C
// latent functions. Everything is made of one N x C matrix w >= 0, S = w^1/2:
//   independent functions: W = diag(w), R = S;
//   functions coupled in a row (softmax): W = diag(w) - w w' / 1'w, R = S (I - q q') with
//   q = S 1 / |S 1|, the unit vector of the square roots of the row.
//   Cost: a product with R or R' is 2 to 4 N C flops a right-hand side.
// W may be zero or singular: nothing is divided by it.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct Curvature {
  Curvature() = default;
  /// Implicit: a matrix alone is the curvature of independent functions.
  Curvature(Matrix weights, bool rows_coupled = false)  // NOLINT(google-explicit-constructor)
      : w(std::move(weights)), coupled(rows_coupled) {}
  Matrix w;  // N x C, not negative
  bool coupled = false;
};

/// Blocks of right-hand sides are N x (C t): the functions of each side by side. The same memory is
/// a stacked N C x t.
class CurvatureRoot {
 public:
  CurvatureRoot() = default;
  /// Throws DimensionMismatch unless there is a row for each of `points`, InvalidArgument when an
  /// entry is negative or not finite.
  CurvatureRoot(const Curvature& curvature, Index points);

  Index points() const { return scale_.rows(); }
  Index functions() const { return scale_.cols(); }
  Index size() const { return scale_.size(); }
  bool coupled() const { return coupled_; }
  bool operator==(const CurvatureRoot&) const;

  /// S, N x C.
  const Matrix& scale() const { return scale_; }
  /// q, N x C; empty when the functions are independent.
  const Matrix& direction() const { return direction_; }
  /// The diagonal of block (c, d) of W, N.
  Vector block(Index c, Index d) const;

  /// out = R v and out = R'v.
  void apply(ConstMatrixView v, MatrixView out) const;
  void apply_transposed(ConstMatrixView v, MatrixView out) const;
  Matrix times(ConstMatrixView v) const;
  Matrix transposed_times(ConstMatrixView v) const;
  /// U'v, N x t, and out += U t, where U, N C x N, has the q of every row: I - U U' = the product
  /// of all I - q q'. Coupled functions only.
  Matrix along(ConstMatrixView v) const;
  void add_along(double factor, ConstMatrixView t, MatrixView out) const;

 private:
  Matrix scale_, direction_;
  bool coupled_ = false;
};

}  // namespace mercer::inference
MERCER_API_END
