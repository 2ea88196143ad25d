// Solves with B = I + R'K R for latent functions that share the kernel matrix K, with R a root of
// their curvature W: what every step of Newton's method and every gradient of a Laplace
// approximation need. The C functions are stacked into one vector of N C entries; a product with
// all of them is one block product with K.
//   Source: Rasmussen & Williams (2006), sections 3.4.3 and 3.5; Cutajar et al. (2016), supplement.
//   Cost:   dense: N^3/3 flops a function and 8 N^2 (1 + C) bytes; functions coupled in a row N^3 a
//           function, and 8 N^2 (3 + C) bytes (curved_operator.hpp). iterative: one block product
//           an iteration; K is never stored unless the operator does.
// B has eigenvalues of at least 1 and nothing is ever divided by W, which may be zero or singular.
#pragma once

#include <memory>
#include <vector>

#include "mercer/inference/laplace/curved_operator.hpp"
#include "mercer/inference/laplace/local_likelihood.hpp"
#include "mercer/inference/log_determinant.hpp"
#include "mercer/inference/system.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// log|B|: by a factorisation, or estimated, or why it is not known.
struct CurvedDeterminant {
  bool exact = false;
  LogDeterminant estimate;  // its value when exact
  std::string reason;       // why there is none; empty when there is
};

class LaplaceSystem {
 public:
  virtual ~LaplaceSystem() = default;
  virtual Index points() const = 0;
  /// kv = K v; N x any number of columns.
  virtual void multiply(ConstMatrixView v, MatrixView kv) const = 0;
  /// W; before the first solve and whenever it changes.
  virtual void set_curvature(const Curvature& curvature) = 0;
  virtual const CurvatureRoot& root() const = 0;
  /// X = B^-1 B0 for t stacked right-hand sides (N C x t), to `tolerance` in the residual; X is the
  /// first guess.
  virtual SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                             const Observer& observer = {}) = 0;
  /// The C x C blocks k_j'R B^-1 R'k_j of the columns k_j of `cross` (N x M), what the data explain
  /// of the covariance of the functions at M points: row j has entry (c, d) in column c + C d.
  /// Coupled functions: C right-hand sides a point.
  struct Explained {
    Matrix blocks;     // M x C^2
    Matrix truncated;  // M x C: at most so much more is explained of each variance
    SystemReport report;
  };
  virtual Explained explained(ConstMatrixView cross, double tolerance,
                              const Observer& observer = {}) = 0;
  /// Single-column products with K so far.
  virtual std::int64_t products() const = 0;
  /// The sum over the functions of log|B|, of the last curvature.
  virtual CurvedDeterminant log_determinant(const LogDeterminantOptions& options,
                                            const Observer& observer = {}) = 0;
  /// Named "none" when there is none.
  virtual const preconditioners::BuildReport& preconditioner_report() const = 0;
};

/// By Cholesky of B; the reference, and the quickest for small N. Factors of an earlier B, where it
/// is close enough, save new ones: they precondition conjugate gradients.
class DenseLaplaceSystem final : public LaplaceSystem {
 public:
  DenseLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x);
  ~DenseLaplaceSystem() override;
  /// Another K of as many points; the factors are those of an earlier B from now on.
  void set_kernel(const kernels::Kernel& kernel, const Matrix& x);
  Index points() const override { return k_.rows(); }
  void multiply(ConstMatrixView v, MatrixView kv) const override;
  void set_curvature(const Curvature& curvature) override;
  const CurvatureRoot& root() const override { return root_; }
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                     const Observer& observer = {}) override;
  Explained explained(ConstMatrixView cross, double tolerance,
                      const Observer& observer = {}) override;
  std::int64_t products() const override { return products_; }
  /// By the factors, whatever the options.
  CurvedDeterminant log_determinant(const LogDeterminantOptions& options,
                                    const Observer& observer = {}) override;
  const preconditioners::BuildReport& preconditioner_report() const override { return no_report_; }

  const Matrix& k() const { return k_; }
  /// Factors B of the last curvature, if that is not done yet.
  void factor();
  /// Throws the factors away: what follows does not depend on what was before.
  void forget() { factor_.reset(); }
  int factorisations() const { return factorisations_; }
  /// log|B|; factors.
  double log_det();
  /// B_c^-1 of function c, of its own block when functions are coupled; factors.
  Matrix inverse(Index c);
  /// Coupled functions: U'H U; factors.
  const linalg::Cholesky& coupling();

 private:
  class Product;

  Matrix k_;
  CurvatureRoot root_;
  std::unique_ptr<CurvedFactor> factor_;
  bool current_ = false;  // the factor is that of B, not of an earlier one
  int factorisations_ = 0;
  mutable std::int64_t products_ = 0;
  preconditioners::BuildReport no_report_{.name = "none"};
};

/// By preconditioned conjugate gradients. With the preconditioner "auto", P = I + R'F F'R with F a
/// randomly pivoted Cholesky factor of K that is kept while W changes; any other name is built for
/// K + W^-1 and rewritten for B, anew for every W. Coupled functions have no W^-1: their curvature
/// is refused (InvalidArgument) with a preconditioner other than "auto" and "none".
class IterativeLaplaceSystem final : public LaplaceSystem {
 public:
  /// `choice`: solver, preconditioner, operator, precision, iterations at most.
  IterativeLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x, SystemChoice choice);
  ~IterativeLaplaceSystem() override;
  Index points() const override;
  void multiply(ConstMatrixView v, MatrixView kv) const override;
  void set_curvature(const Curvature& curvature) override;
  const CurvatureRoot& root() const override;
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                     const Observer& observer = {}) override;
  Explained explained(ConstMatrixView cross, double tolerance,
                      const Observer& observer = {}) override;
  std::int64_t products() const override;
  /// By Lanczos quadrature, which needs a preconditioner with a log determinant of its own.
  CurvedDeterminant log_determinant(const LogDeterminantOptions& options,
                                    const Observer& observer = {}) override;
  const preconditioners::BuildReport& preconditioner_report() const override;

  /// K itself, in double.
  const operators::KernelOperator& k() const;
  /// B of all functions, and P close to it, of the last curvature; P may be null.
  const linalg::LinearOperator& b() const;
  const linalg::Preconditioner* preconditioner() const;
  double build_seconds() const;

  /// For the planner: blocks of `columns` vectors of every function that a run has at once, and
  /// the preconditioner "auto" of this rank.
  static double vector_bytes(Index n, FunctionCount functions, Index columns);
  static double low_rank_bytes(Index n, FunctionCount functions, Index rank);

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// Rank of the low-rank part of "auto": max(100, 4 sqrt(N)), at most `most` and N.
Index laplace_rank(Index n, Index most);

}  // namespace mercer::inference
MERCER_API_END
