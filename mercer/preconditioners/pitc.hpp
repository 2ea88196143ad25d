// P = F F' + blockdiag(K - F F') + noise with F from Nystrom and blocks of nearby points: the
// partially independent training conditional. Landmarks carry what is far, blocks what is near.
//   Source: Quinonero-Candela & Rasmussen (2005); Cutajar et al. (2016) as a preconditioner, with
//           sqrt(N) landmarks and sqrt(N) blocks. Blocks are those of block-jacobi.
//   Cost:   that of nystrom (rank k) and of block-jacobi (blocks of m points), N m k flops more to
//           build; 4 N k + 2 N m flops to apply.
//   When not: lengthscales between the two, where a block ends too soon and few landmarks do not
//           reach.
//
// With D = L L' the block-diagonal part and B = L^-1 F, P = L (I + B B') L'; the middle is Woodbury
// with a diagonal of ones, however small the noise is.
#pragma once

#include "mercer/approximations/low_rank.hpp"
#include "mercer/preconditioners/block_cholesky.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {

class Pitc final : public linalg::Preconditioner {
 public:
  /// F is given away; F F' may not exceed K beyond rounding.
  Pitc(const operators::KernelOperator& k, const linalg::Diagonal& noise, Matrix&& factor,
       Index blocks);

  Index size() const override { return blocks_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return blocks_.log_det() + core_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override;

  const BlockCholesky& blocks() const { return blocks_; }
  const Woodbury& core() const { return core_; }

 private:
  BlockCholesky blocks_;  // L
  Woodbury core_;         // I + B B'
};

PreconditionerInfo pitc_info();

}  // namespace mercer::preconditioners
