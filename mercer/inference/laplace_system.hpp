// Solves with B = I + W^1/2 K W^1/2 for latent functions that share the kernel matrix K but have
// each its own curvature W: what every step of Newton's method and every gradient of a Laplace
// approximation need. The C functions are stacked into one vector of N C entries; a product with
// all of them is one block product with K.
//   Source: Rasmussen & Williams (2006), section 3.4.3; Cutajar et al. (2016), supplement.
//   Cost:   dense: N^3/3 flops a function and 8 N^2 (1 + C) bytes. iterative: one block product
//           an iteration; K is never stored unless the operator does.
// B has eigenvalues of at least 1 and nothing is ever divided by W, which may be zero.
#pragma once

#include <memory>
#include <vector>

#include "mercer/inference/log_determinant.hpp"
#include "mercer/inference/system.hpp"

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
  /// W, N x C, not negative; before the first solve and whenever it changes.
  virtual void set_curvature(ConstMatrixView w) = 0;
  /// X = B^-1 B0 for t stacked right-hand sides (N C x t), to `tolerance` in the residual; X is the
  /// first guess.
  virtual SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                             const Observer& observer = {}) = 0;
  /// Single-column products with K so far.
  virtual std::int64_t products() const = 0;
  /// The sum over the functions of log|B|, of the last curvature.
  virtual CurvedDeterminant log_determinant(const LogDeterminantOptions& options,
                                            const Observer& observer = {}) = 0;
  /// Named "none" when there is none.
  virtual const preconditioners::BuildReport& preconditioner_report() const = 0;
};

/// By Cholesky of every B; the reference, and the quickest for small N. Factors of an earlier B,
/// where it is close enough, save new ones: they precondition conjugate gradients.
class DenseLaplaceSystem final : public LaplaceSystem {
 public:
  DenseLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x);
  ~DenseLaplaceSystem() override;
  /// Another K of as many points; the factors are those of an earlier B from now on.
  void set_kernel(const kernels::Kernel& kernel, const Matrix& x);
  Index points() const override { return k_.rows(); }
  void multiply(ConstMatrixView v, MatrixView kv) const override;
  void set_curvature(ConstMatrixView w) override;
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
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
  void forget() { factors_.clear(); }
  int factorisations() const { return factorisations_; }
  /// Sum over the functions of log|B|; factors.
  double log_det();
  /// B^-1 of function c; factors.
  Matrix inverse(Index c);

 private:
  class Product;

  Matrix k_, root_;  // root_: W^1/2
  std::vector<linalg::Cholesky> factors_;
  bool current_ = false;  // the factors are those of B, not of an earlier one
  int factorisations_ = 0;
  mutable std::int64_t products_ = 0;
  preconditioners::BuildReport no_report_{.name = "none"};
};

/// By preconditioned conjugate gradients. With the preconditioner "auto", P = I + W^1/2 F F' W^1/2
/// with F a randomly pivoted Cholesky factor of K that is kept while W changes; any other name is
/// built for K + W^-1 and rewritten for B, anew for every W.
class IterativeLaplaceSystem final : public LaplaceSystem {
 public:
  /// `choice`: solver, preconditioner, operator, precision, iterations at most.
  IterativeLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x, SystemChoice choice);
  ~IterativeLaplaceSystem() override;
  Index points() const override;
  void multiply(ConstMatrixView v, MatrixView kv) const override;
  void set_curvature(ConstMatrixView w) override;
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Rank of the low-rank part of "auto": max(100, 4 sqrt(N)), at most `most` and N.
Index laplace_rank(Index n, Index most);

}  // namespace mercer::inference
