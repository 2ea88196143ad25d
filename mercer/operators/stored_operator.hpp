// K kept in memory as tiles (lower triangle only), in double or float32: pays when an evaluation
// costs more than reading it back (large d, long expressions) and many products are wanted.
//   Cost: build N^2/2 evaluations; a product reads 4 N^2 (double) or 2 N^2 (float32) bytes.
#pragma once

#include <memory>

#include "mercer/operators/operator_info.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

class StoredOperator final : public KernelOperator {
 public:
  StoredOperator(kernels::Kernel kernel, Matrix points, Precision precision = Precision::float64);
  ~StoredOperator() override;

  const kernels::Kernel& kernel() const override;
  const Matrix& points() const override;
  Precision precision() const override;
  void apply(ConstMatrixView x, MatrixView y) const override;
  void columns(std::span<const Index> which, MatrixView out) const override;
  void apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient) const override;
  void apply_with_quick_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                 VectorView gradient) const override;

  /// Bytes the stored tiles take, for the planner.
  static double bytes(Index n, Precision precision);

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

OperatorInfo stored_info();

}  // namespace mercer::operators
MERCER_API_END
