// B = I + R'K R of a Laplace approximation as an operator, its factors and its preconditioners. K
// is shared by all functions; R is the root of the curvature (curvature_root.hpp).
//   Coupled functions: with the blocks B_c = I + S_c K S_c of independent ones, H = diag(B_c^-1)
//   and U, the directions q of all rows (U'U = I),
//     B^-1   = U U' + H - H U (U'H U)^-1 U'H,     log|B| = sum_c log|B_c| + log|U'H U|:
//   C + 1 factorisations of N x N matrices instead of one of N C x N C, and R B^-1 R' is the
//   (K + W^-1)^-1 of Rasmussen & Williams (2006), algorithm 3.3, here without the division by W.
//   The eigenvalues of U'H U lie between 1/|B| and 1.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mercer/inference/laplace/curvature_root.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/linear_operator.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// N C x t, without gaps, as N x (C t).
inline Eigen::Map<const Matrix> unstacked(ConstMatrixView x, Index n) {
  return {x.data(), n, x.rows() / n * x.cols()};
}

class CurvedOperator final : public linalg::LinearOperator {
 public:
  /// Both must outlive this.
  CurvedOperator(const linalg::LinearOperator& k, const CurvatureRoot& root) : k_(k), root_(root) {}
  Index size() const override { return root_.size(); }
  linalg::RowSpace row_space() const override { return k_.row_space().stacked(root_.functions()); }
  void apply(ConstMatrixView x, MatrixView y) const override;

 private:
  const linalg::LinearOperator& k_;
  const CurvatureRoot& root_;
  mutable Matrix scaled_, product_;  // kept from product to product
};

/// B by Cholesky.
class CurvedFactor final : public linalg::Preconditioner {
 public:
  /// Factors in the memory of `old`, where there is one.
  CurvedFactor(const Matrix& k, const CurvatureRoot& root, std::unique_ptr<CurvedFactor> old);
  Index size() const override { return root_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  void solve_in_place(MatrixView b) const;
  double log_det() const override;
  void sample(Rng& rng, MatrixView z) const override;

  /// Number of matrices factored.
  int count() const { return static_cast<int>(blocks_.size()) + (coupling_ ? 1 : 0); }
  /// B_c.
  const linalg::Cholesky& block(Index c) const { return blocks_[static_cast<std::size_t>(c)]; }
  /// U'H U; coupled functions only.
  const linalg::Cholesky& coupling() const { return *coupling_; }
  const CurvatureRoot& root() const { return root_; }

 private:
  void solve_blocks(MatrixView b) const;

  CurvatureRoot root_;
  std::vector<linalg::Cholesky> blocks_;
  std::optional<linalg::Cholesky> coupling_;
};

/// One preconditioner a function: of B itself, or of K + W^-1 = S^-1 B S^-1. Independent functions.
class CurvedPreconditioner final : public linalg::Preconditioner {
 public:
  /// `scale` is S when the parts are those of K + W^-1, else empty.
  CurvedPreconditioner(std::vector<std::unique_ptr<linalg::Preconditioner>> parts, Matrix scale)
      : parts_(std::move(parts)), scale_(std::move(scale)) {}
  Index size() const override { return static_cast<Index>(parts_.size()) * parts_[0]->size(); }
  linalg::RowSpace row_space() const override {
    return parts_[0]->row_space().stacked(static_cast<Index>(parts_.size()));
  }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override;
  void sample(Rng& rng, MatrixView z) const override;

 private:
  std::vector<std::unique_ptr<linalg::Preconditioner>> parts_;
  Matrix scale_;
};

/// P = I + R' (I (x) F F') R for coupled functions, from a low-rank factor F of K, N x k:
///   P^-1 = I - G (I + G'G)^-1 G',  G = R' (I (x) F), which is never formed.
///   Cost: N (k C)^2 flops and 8 (k C)^2 bytes to build, 4 N k C flops a right-hand side. The
///         textbook form loses digits like |G'G|: good enough to precondition, not to solve.
class CoupledLowRank final : public linalg::Preconditioner {
 public:
  /// Both must outlive this.
  CoupledLowRank(const Matrix& factor, Index rank, const CurvatureRoot& root);
  Index size() const override { return root_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return small_->log_det(); }
  void sample(Rng& rng, MatrixView z) const override;

  /// Columns of F that are used with so many functions: k C is at most 2,000.
  static Index rank_for(Index functions, Index available);

 private:
  // out -= or += R' (I (x) F) w, w stacked k C x t.
  void add_low_rank(double factor, const Matrix& w, MatrixView out) const;

  Eigen::Ref<const Matrix> f_;  // N x k
  const CurvatureRoot& root_;
  std::optional<linalg::Cholesky> small_;  // I + G'G
};

}  // namespace mercer::inference
MERCER_API_END
