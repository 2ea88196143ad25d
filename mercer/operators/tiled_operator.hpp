// K V without storing K: tiles are evaluated with SIMD, used and forgotten.
//   Cost: N^2/2 kernel evaluations a product (each off-diagonal tile serves both triangles),
//         whatever the number of right-hand sides; O(N d) memory.
//   Same bits for any number of threads: pairs of blocks are scheduled like a tournament, in
//   rounds of disjoint pairs, so sums have a fixed order and need no per-thread buffers.
#pragma once

#include <memory>

#include "mercer/operators/operator_info.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

class TiledOperator final : public KernelOperator {
 public:
  TiledOperator(kernels::Kernel kernel, Matrix points, Precision precision = Precision::float64);
  ~TiledOperator() override;

  const kernels::Kernel& kernel() const override;
  const Matrix& points() const override;
  Precision precision() const override;
  void apply(ConstMatrixView x, MatrixView y) const override;
  void columns(std::span<const Index> which, MatrixView out) const override;
  void apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient) const override;
  void apply_with_quick_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                 VectorView gradient) const override;

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

OperatorInfo tiled_info();

/// Bytes of a TiledOperator of n points in d inputs while it multiplies `columns` vectors:
/// points twice (the caller's order and sorted), vectors and sums in sorted order, and each
/// thread's tiles.
double tiled_bytes(Index n, Index d, Index columns);

/// out = K(a, x) v, streamed over blocks of rows of a; a is M x d, v is N x t, out is M x t.
/// K(a, x) is never stored.
void cross_apply(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView x,
                 ConstMatrixView v, Precision precision, MatrixView out);

/// The dense matrix k(a_i, b_j) in double, evaluated with SIMD and threads.
void cross_matrix(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                  MatrixView out);

/// K(x, x) as a dense symmetric matrix in double.
void dense_matrix(const kernels::Kernel& kernel, ConstMatrixView x, MatrixView out);

/// The lower triangle of out = that of K(x, x): what a factorisation reads.
void lower_matrix(const kernels::Kernel& kernel, ConstMatrixView x, MatrixView out);

/// gradient(p) = sum_ij s(i, j) dk(x_i, x_j)/dtheta_p for a dense symmetric s, whose lower triangle
/// is read: the exact gradient of a likelihood. In double.
void weighted_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstMatrixView s,
                       VectorView gradient);
/// The same with w w' - s in place of s.
void weighted_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstVectorView w,
                       ConstMatrixView s, VectorView gradient);

/// The instruction set in use, e.g. "AVX3", "AVX2", "SSE4".
const char* simd_target();

}  // namespace mercer::operators
MERCER_API_END
