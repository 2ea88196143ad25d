// P = F F' + D for a tall F and a positive diagonal D: the core of every low-rank preconditioner.
//   Source: Woodbury (1950), in orthogonal form. With F scaled by D^-1/2 and F F' = U S U',
//             P    = D^1/2 (I + U S U') D^1/2
//             P^-1 = D^-1/2 (I - U S (I + S)^-1 U') D^-1/2.
//           The textbook form, with the inverse of I + F'F, loses digits like S_1: here U is
//           orthonormal to rounding, however small D is.
//   Cost:   3 N k^2 flops and one k x k eigenproblem to build (twice that when S_1 is above 1e6:
//           U is then made orthonormal again), 4 N k to apply (8 N k when S_1 is above 1e10), 8 N k
//           bytes (F becomes U in place).
//   Rows may be shared among ranks: sums over rows are k x k to build and k x t to apply, reduced.
#pragma once

#include <utility>

#include "mercer/linalg/linear_operator.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

class Woodbury final : public linalg::Preconditioner {
 public:
  /// F F' + D; F is N x k and given away. Throws unless D is positive.
  Woodbury(Matrix&& factor, const linalg::Diagonal& d)
      : Woodbury(std::move(factor), d, linalg::RowSpace::local(factor.rows())) {}
  /// The rows of F and D that are held here: U has the same rows, S is that of all ranks.
  Woodbury(Matrix&& factor, const linalg::Diagonal& d, const linalg::RowSpace& space);

  Index size() const override { return u_.rows(); }
  linalg::RowSpace row_space() const override { return space_; }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return log_det_; }
  void sample(Rng& rng, MatrixView z) const override;

  /// Columns of U. Directions of F below rounding of the largest are left out (`dropped`).
  Index rank() const { return u_.cols(); }
  Index dropped() const { return dropped_; }

  static double bytes(Index n, Index rank);
  static double build_flops(Index n, Index rank);
  static double apply_flops(Index n, Index rank);

 private:
  void orthogonalise();
  void orthogonalise_again();

  linalg::RowSpace space_;
  Matrix u_;     // N x k, orthonormal columns
  Vector s_;     // eigenvalues of D^-1/2 F F' D^-1/2, ascending, positive
  Vector root_;  // D^1/2
  double log_det_ = 0;
  Index dropped_ = 0;
};

}  // namespace mercer::preconditioners
MERCER_API_END
