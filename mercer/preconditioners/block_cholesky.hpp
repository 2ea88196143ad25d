// A block-diagonal matrix D = L L' over a partition of the points: the core of block-jacobi and
// pitc. Blocks are independent, so they are factored and applied in parallel.
//   Cost: sum of m^3/3 flops to build, of 2 m^2 to apply, 8 sum of m^2 bytes, m the block sizes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mercer/approximations/clusters.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

/// Blocks when nobody asks: of about 4 sqrt(N) points, at least 100 and at most 500 of them. The
/// factors then cost about as much as one product with K to build, and little to apply.
Index default_blocks(Index n);
/// "500 blocks cut to the number of points 60; " when more blocks than points were asked for.
std::string blocks_note(Index n, const PreconditionerOptions& options);

/// The block of K + D for some points.
void fill_kernel_block(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                       std::span<const Index> points, MatrixView block);

class BlockCholesky {
 public:
  /// Writes the block of the given points (its lower triangle is read).
  using Fill = std::function<void(std::span<const Index> points, MatrixView block)>;

  /// A block that is not positive definite to rounding gets jitter on its diagonal: the size of
  /// rounding first, ten times more until it is. Throws NotPositiveDefinite beyond 1 % of the
  /// block's largest diagonal entry.
  BlockCholesky(approximations::Clusters clusters, const Fill& fill);

  Index size() const { return static_cast<Index>(clusters_.order.size()); }
  const approximations::Clusters& clusters() const { return clusters_; }
  double log_det() const;
  /// Entries of all blocks together.
  double entries() const;

  /// In place for N x t blocks in the order of the points: b = D^-1 b, L^-1 b, L^-T b, L b.
  void solve_in_place(MatrixView b) const;
  void solve_lower_in_place(MatrixView b) const;
  void solve_upper_in_place(MatrixView b) const;
  void multiply_lower_in_place(MatrixView b) const;

  /// "3 blocks were singular to rounding and got up to 1e-12 on the diagonal; ", or nothing.
  std::string jitter_note() const;

  /// For `blocks` of equal size.
  static double bytes(Index n, Index blocks);
  static double build_flops(Index n, Index blocks);
  static double apply_flops(Index n, Index blocks);

 private:
  template <class Apply>
  void for_blocks(MatrixView b, const Apply& apply) const;

  approximations::Clusters clusters_;
  std::vector<Matrix> factors_;  // lower triangles
  std::vector<double> jitter_;   // of each block
};

/// What clusters, kernel blocks and their factors cost.
Cost block_cost(Index n, Index d, const PreconditionerOptions& options);

}  // namespace mercer::preconditioners
