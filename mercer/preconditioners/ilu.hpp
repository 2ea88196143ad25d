// Incomplete Cholesky factorisation of A = K + noise: entries below a threshold are left out of A
// and of every new column of the factor, P = L L'. (Users know it as incomplete LU, ilu.)
//   Source: Saad, Iterative Methods, section 10.8; the global shift is Manteuffel's (1980).
//   Cost:   N^2/2 kernel values; 12 bytes per entry kept in L, and as many in A while it is built.
//           Dense in the worst case: 6 N^2 bytes kept, 12 N^2 to build, N^3/3 flops, on one thread.
//           2 flops per entry and triangle to apply.
//   When not: correlations that reach across the data: L is then dense, and Cholesky quicker. Long
//           lengthscales besides need a large shift.
//
// Every pivot of the exact factor is at least the noise of its row. Leaving entries out can push
// one below that; the factorisation then starts again with a larger shift a on the diagonal, A + a
// I, and says so.
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

constexpr double default_drop = 1e-3;

/// The strictly lower triangle by columns; rows ascend within a column.
struct SparseLower {
  std::vector<std::int64_t> start;  // of each column, and the end of the last
  std::vector<std::int32_t> row;
  std::vector<double> value;
};

class IncompleteCholesky final : public linalg::Preconditioner {
 public:
  /// Entries (i, j) below drop sqrt(a_ii a_jj) are left out; drop = 0 is the whole factor.
  IncompleteCholesky(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                     double drop);

  Index size() const override { return diagonal_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override;
  void sample(Rng& rng, MatrixView z) const override;

  /// Entries of L below the diagonal.
  Index entries() const { return static_cast<Index>(l_.value.size()); }
  /// What was added to the diagonal of A, and how often the factorisation was begun.
  double shift() const { return shift_; }
  int attempts() const { return attempts_; }

 private:
  SparseLower l_;
  Vector diagonal_;  // of L
  double shift_ = 0;
  int attempts_ = 0;
};

PreconditionerInfo ilu_info();

}  // namespace mercer::preconditioners
