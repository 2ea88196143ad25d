// S_bb = K(b, b) of base points b, factored, and the whitened columns V = L_bb^-1 K(b, x) that all
// sparse approximations are written in: Q = V'V, however badly S_bb is conditioned.
//   Jitter: none when the factorisation leaves pivots that are told from rounding, else 1e-14 of
//   the mean diagonal and ten times more until it does. Q = K_xb (S_bb + jitter)^-1 K_bx stays
//   below K, so that bounds stay bounds. Cost: m^3/3 flops and 8 m^2 bytes; m^2 flops and m kernel
//   values a row.
#pragma once

#include <algorithm>

#include "mercer/inference/observations.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::inference {

/// Rows that are worked on together: memory is that of so many rows of V.
inline constexpr Index kSparseRows = 4096;

/// body(first, count) for slices of the rows.
template <class Body>
void for_slices(Index rows, const Body& body) {
  for (Index first = 0; first < rows; first += kSparseRows)
    body(first, std::min(kSparseRows, rows - first));
}

class BaseFactor {
 public:
  /// Throws NotPositiveDefinite when no jitter up to 1e-4 of the diagonal helps.
  BaseFactor(const kernels::Kernel& kernel, Matrix base);
  /// With this jitter, or more where that does not do.
  BaseFactor(const kernels::Kernel& kernel, Matrix base, double jitter);

  Index size() const { return base_.rows(); }
  const Matrix& base() const { return base_; }
  const kernels::Kernel& kernel() const { return kernel_; }
  /// L_bb, zero above the diagonal.
  const Matrix& factor() const { return factor_; }
  double jitter() const { return jitter_; }
  /// Jitter by the mean diagonal of K(b, b).
  double relative_jitter() const { return relative_jitter_; }

  /// V' of the rows of x: n x m.
  Matrix whitened(ConstMatrixView x) const;
  /// x = L_bb^-T x in place, of weights on whitened columns: weights on kernel values.
  void to_kernel_weights(MatrixView x) const;

 private:
  void raise_jitter(const Matrix& s, double from);
  bool try_factor(const Matrix& s, double jitter, double least_pivot);

  kernels::Kernel kernel_;
  Matrix base_, factor_;
  double jitter_ = 0, relative_jitter_ = 0;
};

/// diag(K - Q) of the rows of x from their V', never below 0.
Vector unexplained(const kernels::Kernel& kernel, ConstMatrixView x, const Matrix& v);

}  // namespace mercer::inference
