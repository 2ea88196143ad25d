// The sums over rows that every sparse approximation with base points is made of. With V = L_bb^-1
// S_bn (base_factor.hpp), C = V'V + Lambda and B = I + V Lambda^-1 V' = L_B L_B',
//     U = L_B^-1 V Lambda^-1 [y A],   [y A]'C^-1 [y A] = [y A]'Lambda^-1 [y A] - U'U,
//     log|C| = log|Lambda| + 2 sum log diag L_B,
// so that log N(y; A beta, C), the best beta and the posterior of L_bb^-1 f(b) follow from one pass
// over the rows. Lambda is D, the noise of the rows; D + diag(K - Q); or D + blockdiag(K - Q).
//   Source: Quinonero-Candela & Rasmussen (2005); Snelson & Ghahramani (2006, 2007); Titsias
//   (2009). Cost:   2 N m^2 flops and N m kernel values, all of it in matrix products; 8 m (m + 2
//   kSparseRows)
//           bytes whatever N. Blocks of B rows: N B m + N B^2/3 flops and 8 B^2 bytes more.
//   Rows are added in slices of a fixed size in their order: same bits on any number of threads.
#pragma once

#include <span>

#include "mercer/inference/problem.hpp"
#include "mercer/inference/sparse/base_factor.hpp"
#include "mercer/inference/sparse/sparse_posterior.hpp"

namespace mercer::inference {

/// What stands for the part of K that base points do not explain.
enum class Unexplained { nothing, diagonal, blocks };

/// A member of the family: its Lambda, and whether tr(D^-1 (K - Q))/2 is taken off the evidence.
struct SparseModel {
  Unexplained lambda = Unexplained::nothing;
  bool trace_term = false;
};

struct SparseSolution {
  Index rows = 0;
  Matrix factor;         // L_B, zero above the diagonal
  Vector mean_weights;   // m: V C^-1 (y - A beta)
  Matrix trend_weights;  // m x q: U_A
  Vector beta;
  Matrix beta_covariance;
  double evidence = 0;  // with the replicates
};

/// Rows of a slice with the noise variances and the basis of the mean; y has one column.
struct SparseSlice {
  Matrix x;
  Vector y, noise, slope;  // slope: of the noise in log s2
  Matrix basis;
};

class SparseSums {
 public:
  /// Both must outlive this. The noise must be Gaussian.
  SparseSums(const Problem& problem, const BaseFactor& base, SparseModel model);

  /// Rows, as many as there are. Not when Lambda has blocks.
  void add(const Observations& rows);
  /// Rows that are one block of Lambda.
  void add_block(const Observations& rows);
  void add_block(const SparseSlice& rows);

  /// Throws NotPositiveDefinite, also when the columns of the mean are dependent.
  SparseSolution finish();
  /// factor, mean_weights and trend_weights of a y that is free of its mean already.
  SparseSolution finish_without_mean();

 private:
  void add_whitened(const Matrix& t, double log_det, Index rows);

  const Problem& problem_;
  const BaseFactor& base_;
  SparseModel model_;
  Matrix gram_;  // of [V' y A] whitened by Lambda
  double log_det_ = 0, trace_ = 0, replicates_ = 0;
  Index rows_ = 0;
};

SparseSlice slice_of(const Problem& problem, const Observations& rows, Index first, Index count);
/// The Cholesky factor of K - Q + D of a block of rows, from their V' (the lower triangle counts).
Matrix block_factor(const kernels::Kernel& kernel, ConstMatrixView x, ConstMatrixView v,
                    ConstVectorView noise);
/// Throws DimensionMismatch, InvalidArgument when y, noise or columns do not fit.
void check_sparse_rows(const Problem& problem, const Observations& rows);

}  // namespace mercer::inference
