// P = diag(K) + D, D the noise.
//   Cost: N kernel values to build, N flops to apply.
//   When not: stationary kernels with equal noise, whose diagonal is constant: it then changes
//           nothing.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

class Jacobi final : public linalg::Preconditioner {
 public:
  Jacobi(const operators::KernelOperator& k, const linalg::Diagonal& noise);

  Index size() const override { return d_.size(); }
  linalg::RowSpace row_space() const override { return space_; }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override;
  void sample(Rng& rng, MatrixView z) const override;

 private:
  linalg::RowSpace space_;
  Vector d_;
};

PreconditionerInfo jacobi_info();

}  // namespace mercer::preconditioners
MERCER_API_END
