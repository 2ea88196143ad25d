// The rows of a reference kernel matrix that a rank holds; every rank has all points.
#pragma once

#include "tests/testing/reference_kernel_operator.hpp"
#include "tests/testing/two_ranks.hpp"

namespace mercer::testing {

class SplitKernelOperator final : public operators::KernelOperator {
 public:
  SplitKernelOperator(const ReferenceKernelOperator& whole, const linalg::RowSpace& space)
      : whole_(whole), space_(space), rows_(whole.matrix(), space) {}

  const kernels::Kernel& kernel() const override { return whole_.kernel(); }
  const Matrix& points() const override { return whole_.points(); }
  operators::Precision precision() const override { return operators::Precision::float64; }
  Index size() const override { return space_.size(); }
  linalg::RowSpace row_space() const override { return space_; }

  void apply(ConstMatrixView x, MatrixView y) const override {
    rows_.apply(x, y);
    count_products(x.cols());
  }
  void columns(std::span<const Index> which, MatrixView out) const override {
    for (std::size_t j = 0; j < which.size(); ++j)
      out.col(static_cast<Index>(j)) =
          whole_.matrix().col(which[j]).segment(space_.begin(), space_.size());
  }
  void apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient) const override {
    const Matrix all_u = gathered(space_, u), all_v = gathered(space_, v);
    Matrix all_kv(all_v.rows(), all_v.cols());
    whole_.apply_with_gradient(all_u, all_v, all_kv, gradient);
    kv = rows_of(space_, all_kv);
  }

 private:
  const ReferenceKernelOperator& whole_;
  linalg::RowSpace space_;
  SplitDenseOperator rows_;
};

}  // namespace mercer::testing
