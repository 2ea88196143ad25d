// The gradient of a sparse evidence, in a second pass over the rows. With alpha = C^-1 (y - A beta)
// and T = alpha alpha' - C^-1,
//     2 dF = tr(T dC):   dC = dQ + dLambda,   dQ = P'dS_bn + dS_nb P - P'dS_bb P,   P = S_bb^-1
//     S_bn,
// so that with T~ = T (Lambda = D), T less its diagonal or its blocks (Lambda has those of K - Q),
// or T + D^-1 (the trace term of the variational bound), and W = P T~,
//     2 dF = 2 tr(W dS_nb) - tr(W P'dS_bb) + sum over that diagonal or those blocks of T dK
//            + sum_i T_ii dD_ii,
// and with the trace term - tr(D^-1 dK) + sum_i (K - Q)_ii / D_ii^2 dD_ii. By the envelope theorem
// beta adds nothing. The same W gives the gradient in the base points.
//   Cost:   4 N m^2 flops (6 with a diagonal), two kernel evaluations of all N m pairs, one with
//           derivatives; O(m^2) bytes and those of a slice of rows. Blocks: 2 N B m + N B^2 more.
#pragma once

#include "mercer/inference/sparse/sparse_sums.hpp"

namespace mercer::inference {

/// T = sum of low-rank terms - C^-1 over a slice of rows, C^-1 = Omega - Omega V'B^-1 V Omega with
/// Omega = Lambda^-1 diagonal, which may be zero somewhere.
struct GradientRows {
  ConstMatrixView x;
  const Matrix& v;      // V' of the rows, n x m
  const Vector& omega;  // n
  /// P T of the low-rank terms is L_bb^-T left right'; their own diagonal is diagonal_of_terms.
  const Matrix& left;   // m x k
  const Matrix& right;  // n x k
  Vector diagonal_of_terms;
};

/// Sums of the gradient in the kernel's parameters and, where asked for, in the base points.
class KernelGradient {
 public:
  /// `base` and `factor`, L_B, must outlive this.
  KernelGradient(const BaseFactor& base, const Matrix& factor, bool with_base);

  /// Diagonal Omega. `take_diagonal`: T~ is T less its diagonal, and dK has that; `trace`: T~ is T
  /// + Omega and dK has -Omega. Returns diag(T).
  Vector add(const GradientRows& rows, bool take_diagonal, bool trace);
  /// Lambda is a block with the factor `l`; takes T of the block. Returns diag(T).
  Vector add_block(const SparseSlice& rows, const Matrix& v, const Matrix& l, ConstVectorView alpha,
                   ConstVectorView mean_weights);

  /// W P' of all rows for T~ = terms - C^-1, less what was taken above, is known in closed form:
  /// terms_gram is that of the terms (left right'V', m x m), `traces` whether Omega was added.
  void finish(const Matrix& terms_gram, bool traces);
  const Vector& gradient() const { return gradient_; }
  const Matrix& base_gradient() const { return base_gradient_; }

 private:
  void add_weights(ConstMatrixView x, Matrix& w);

  const BaseFactor& base_;
  const Matrix& factor_;
  bool with_base_;
  Vector gradient_;
  Matrix base_gradient_;
  Matrix taken_;  // sum of V diag(T) V' or V T V' of blocks, m x m; empty: nothing was taken
};

class SparseGradient {
 public:
  /// All must outlive this.
  SparseGradient(const Problem& problem, const BaseFactor& base, SparseModel model,
                 const SparseSolution& solution, bool with_base);
  void add(const Observations& rows);
  void add_block(const Observations& rows);
  /// In problem.log_parameters().
  Vector finish();
  /// m x d; after finish().
  const Matrix& base_gradient() const { return kernel_.base_gradient(); }

 private:
  Vector residual(const SparseSlice& s) const;

  const Problem& problem_;
  const BaseFactor& base_;
  SparseModel model_;
  const SparseSolution& solution_;
  KernelGradient kernel_;
  double by_noise_ = 0;
};

}  // namespace mercer::inference
