// A kernel operator that stores the reference matrix, pair by pair: slow, small and independent of
// operators/.
#pragma once

#include "mercer/operators/kernel_operator.hpp"

namespace mercer::testing {

class ReferenceKernelOperator final : public operators::KernelOperator {
 public:
  ReferenceKernelOperator(kernels::Kernel kernel, Matrix points)
      : kernel_(std::move(kernel)),
        points_(std::move(points)),
        k_(kernel_.reference_matrix(points_, points_)) {}

  const kernels::Kernel& kernel() const override { return kernel_; }
  const Matrix& points() const override { return points_; }
  operators::Precision precision() const override { return operators::Precision::float64; }
  const Matrix& matrix() const { return k_; }

  void apply(ConstMatrixView x, MatrixView y) const override {
    y.noalias() = k_ * x;
    count_products(x.cols());
  }
  void columns(std::span<const Index> which, MatrixView out) const override {
    for (std::size_t j = 0; j < which.size(); ++j)
      out.col(static_cast<Index>(j)) = k_.col(which[j]);
  }
  void apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient) const override {
    apply(v, kv);
    gradient.setZero();
    Vector one(gradient.size());
    const Index n = points_.rows();
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        kernel_.evaluate_with_gradient(points_.data() + i, n, points_.data() + j, n, one);
        gradient += u.row(i).dot(v.row(j)) * one;
      }
  }

 private:
  kernels::Kernel kernel_;
  Matrix points_;
  Matrix k_;
};

}  // namespace mercer::testing
