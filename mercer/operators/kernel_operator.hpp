// K(X, X) known by its products, and the little else that preconditioners and learning need of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "mercer/kernels/kernel.hpp"
#include "mercer/linalg/linear_operator.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

/// Arithmetic inside a tile; sums across tiles are always in double.
enum class Precision { float64, float32 };

/// The kernel matrix of a set of points with itself (no noise on the diagonal).
class KernelOperator : public linalg::LinearOperator {
 public:
  virtual const kernels::Kernel& kernel() const = 0;
  /// N x d, one row per point, in the caller's order. Where rows are shared among ranks (an
  /// operator then overrides size() and row_space()) every rank has all points, and its rows of
  /// vectors.
  virtual const Matrix& points() const = 0;
  virtual Precision precision() const = 0;
  Index size() const override { return points().rows(); }

  /// k(x_i, x_i) of the rows held here, in double.
  Vector diagonal() const {
    const auto space = row_space();
    return kernel().diagonal(points().middleRows(space.begin(), space.size()));
  }
  /// out(:, k) = K(:, which[k]), in double; out is size() x which.size().
  virtual void columns(std::span<const Index> which, MatrixView out) const = 0;

  /// One pass over the tiles: kv = K v, and for every log parameter p
  /// gradient(p) = sum over columns c of u(:,c)' (dK/dtheta_p) v(:,c). In double.
  virtual void apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                   VectorView gradient) const = 0;
  /// The same with tiles in this operator's precision: quicker in float32, and rounded as its
  /// products are. Operators that have no such pass do it in double.
  virtual void apply_with_quick_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                         VectorView gradient) const {
    apply_with_gradient(u, v, kv, gradient);
  }

  /// out = K(at, X) v at new points: `at` is M x d, v is N x t, out is M x t. For predictions; it
  /// is not counted in products(). Evaluated by tiles in this operator's precision unless the
  /// operator knows a quicker way.
  virtual void cross(ConstMatrixView at, ConstMatrixView v, MatrixView out) const;

  /// Single-column products done so far (a block of t columns counts t).
  std::int64_t products() const { return products_.load(); }

 protected:
  void count_products(Index columns) const { products_ += columns; }

 private:
  mutable std::atomic<std::int64_t> products_{0};
};

}  // namespace mercer::operators
MERCER_API_END
