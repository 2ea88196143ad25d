// Randomly pivoted Cholesky factorisation: K ~ F F', each pivot drawn with probability proportional
// to the variance left at the points. The accelerated form proposes a block of points at once and
// accepts or rejects them in turn, so that the pivots have exactly the law of one draw at a time
// and all the work is in matrix products.
//   Source: Chen, Epperly, Tropp & Webber (2022); Epperly, Tropp & Webber (2024), algorithm 2.1.
//   Cost:   rank N kernel values (and block^2 for each block proposed), N rank^2 flops in matrix
//           products, 8 N rank bytes.
//   When not: lengthscales much shorter than the data: the residual falls slowly with the rank.
//   Rows may be shared among ranks: each has its rows of F; N numbers are reduced for each block
//   proposed, so that all ranks draw the same points.
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/approximations/low_rank.hpp"
#include "mercer/core/options.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

struct RpCholeskyOptions {
  Index rank = 100;      // at most; N when larger
  Index block = 128;     // points proposed at once, at most
  double tolerance = 0;  // stop when trace(K - F F') <= tolerance trace(K); looked at after a block
  std::uint64_t seed = 0;
  /// Of the points (the rows held here), positive; empty: 1. Pivots are those of W^1/2 K W^1/2, and
  /// so are the traces: F serves the points with much weight first.
  Vector weights = {};
};

template <class Visitor>
void visit_fields(RpCholeskyOptions& o, Visitor&& field) {
  field("rank", o.rank, Positive{});
  field("block", o.block, Positive{});
  field("tolerance", o.tolerance, NonNegative{});
}

/// A factorisation that can be continued: the rank may be raised as long as it pays.
class RpCholesky {
 public:
  /// Draws nothing yet; `rank` of the options only reserves room. k must outlive this.
  explicit RpCholesky(const operators::KernelOperator& k, const RpCholeskyOptions& options = {});

  /// Adds up to `more` columns; fewer when nothing of K is left or the tolerance is met. Returns
  /// the number added.
  Index grow(Index more);

  Index rank() const { return rank_; }
  /// F, N x rank().
  ConstMatrixView factor() const { return storage_.leftCols(rank_); }
  const std::vector<Index>& pivots() const { return pivots_; }
  /// trace(W K).
  double trace() const { return trace_; }
  /// trace(W (K - F F')).
  double residual_trace() const { return residual_trace_; }
  /// diag(K - F F').
  const Vector& residual() const { return left_; }
  bool exhausted() const { return exhausted_; }
  /// Single entries of K computed so far.
  double kernel_values() const { return kernel_values_; }
  /// Points proposed so far, accepted or not.
  Index proposals() const { return proposals_; }

  /// The result so far, given away.
  LowRank take() &&;

 private:
  bool done() const;
  double weight(Index i) const { return options_.weights.size() > 0 ? options_.weights(i) : 1.0; }
  void reserve(Index columns);
  /// Rows of F by their numbers among all.
  Matrix rows_of_factor(const std::vector<Index>& which) const;
  /// Points drawn with probability proportional to weight and left_, with repetition.
  std::vector<Index> propose(Index count);
  /// K - F F' of the proposed points.
  Matrix residual_gram(const std::vector<Index>& proposed);
  /// Those accepted, in order, and the Cholesky factor of their residual Gram matrix.
  std::vector<Index> accept(const std::vector<Index>& proposed, Index most, Matrix& l);
  /// left_ of a point becomes 0, where it is held.
  void nothing_left_at(Index point);
  void append(const std::vector<Index>& accepted, const Matrix& l);
  void update_residual(Index first, Index count);

  const operators::KernelOperator& k_;
  linalg::RowSpace space_;
  RpCholeskyOptions options_;
  Rng rng_;
  Matrix storage_;  // N x capacity
  Index rank_ = 0;
  std::vector<Index> pivots_;
  Vector left_;        // diag(K - F F'), 0 where nothing but rounding is left
  Vector cumulative_;  // sums of left_ over all rows, on every rank
  double nothing_ = 0;
  double trace_ = 0;
  double residual_trace_ = 0;
  double kernel_values_ = 0;
  Index proposals_ = 0;
  Index block_ = 0;  // proposed next
  bool exhausted_ = false;
};

LowRank rpcholesky(const operators::KernelOperator& k, const RpCholeskyOptions& options = {});

/// Peak bytes while building.
double rpcholesky_bytes(Index n, Index rank);
/// Besides the kernel values.
double rpcholesky_flops(Index n, Index rank);
/// Single entries of K, a guess from above.
double rpcholesky_kernel_values(Index n, Index rank);

}  // namespace mercer::approximations
MERCER_API_END
