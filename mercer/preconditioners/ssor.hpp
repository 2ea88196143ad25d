// Symmetric successive over-relaxation of A = K + noise = L + D + L' (L strictly lower):
//   P = (D/w + L) (w/(2-w)) (D/w)^-1 (D/w + L)', with w = 1, the symmetric Gauss-Seidel method.
//   Source: Young (1971); Saad, Iterative Methods, section 10.2.
//   Cost:   N^2/2 kernel values, 8 N^2 bytes (the square array whose lower triangle is used), 2 N^2
//           flops to apply: as much memory as Cholesky, without its N^3/3 flops.
//   When not: the N x N array does not fit, or Cholesky is affordable. At best it halves the
//           iterations (short lengthscales); P exceeds A by L D^-1 L', which is much where many
//           points are correlated: there it is far worse than nothing.
//
// With M = (D/w + L) (w/(2-w) (D/w)^-1)^1/2, lower triangular, P = M M'.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

/// w, 0 < w < 2. On concrete (N = 1030, rbf, s2 = 1e-2) w = 0.5, 0.8, 1, 1.3, 1.6 took 54, 54, 57,
/// 76, 107 iterations at lengthscale 0.1 and 223, 306, 370, 491, 728 at 1: above 1 it is worse, and
/// below it only comes closer to no preconditioner at all, which is better there.
constexpr double ssor_relaxation = 1.0;

class Ssor final : public linalg::Preconditioner {
 public:
  Ssor(const operators::KernelOperator& k, const linalg::Diagonal& noise);

  Index size() const override { return m_.rows(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override;
  void sample(Rng& rng, MatrixView z) const override;

 private:
  Matrix m_;  // the lower triangle
};

PreconditionerInfo ssor_info();

}  // namespace mercer::preconditioners
