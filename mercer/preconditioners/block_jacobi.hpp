// P = the diagonal blocks of K plus noise over blocks of nearby points, each by Cholesky.
//   Source: Cutajar et al. (2016), who used sqrt(N) blocks in data order; here a kd-tree makes
//           them (approximations/clusters.hpp).
//   Cost:   N m kernel values, N m^2/3 flops and 8 N m bytes to build, 2 N m flops to apply, for
//           blocks of m points. Default: m about 4 sqrt(N), between 100 and 500.
//   When not: lengthscales beyond the size of a block: neighbouring blocks are then strongly
//           coupled, and it can be worse than nothing.
#pragma once

#include "mercer/preconditioners/block_cholesky.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

class BlockJacobi final : public linalg::Preconditioner {
 public:
  BlockJacobi(const operators::KernelOperator& k, const linalg::Diagonal& noise, Index blocks);

  Index size() const override { return core_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return core_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override;

  const BlockCholesky& core() const { return core_; }

 private:
  BlockCholesky core_;
};

PreconditionerInfo block_jacobi_info();

}  // namespace mercer::preconditioners
