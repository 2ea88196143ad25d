// The two interfaces that Krylov methods see. They know nothing of kernels, so solvers are tested
// on small dense matrices and can run over distributed rows later.
#pragma once

#include <cstdint>
#include <span>

#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"
#include "mercer/linalg/diagonal.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

/// A symmetric matrix known by its action; columns of x are separate right-hand sides.
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  virtual Index size() const = 0;
  /// y = A x, for N x t blocks; x and y may not overlap.
  virtual void apply(ConstMatrixView x, MatrixView y) const = 0;
  /// Per-column x'y (summed over ranks when rows are distributed). Deterministic for any number
  /// of threads.
  virtual void column_dots(ConstMatrixView x, ConstMatrixView y, std::span<double> out) const;
};

/// P close to A and cheap to invert.
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  virtual Index size() const = 0;
  /// z = P^-1 r.
  virtual void solve(ConstMatrixView r, MatrixView z) const = 0;
  virtual double log_det() const = 0;
  /// Columns of z ~ N(0, P).
  virtual void sample(Rng& rng, MatrixView z) const = 0;
};

/// A preconditioner that iterates inside solve() may also be one of these; solvers then report what
/// it did during their run. Counts grow from construction on.
class InnerIterations {
 public:
  virtual ~InnerIterations() = default;
  virtual std::int64_t inner_iterations() const = 0;
  virtual std::int64_t inner_products() const = 0;  // single-column products with A or the like
};

/// A dense symmetric matrix as an operator: small problems and tests.
class DenseOperator final : public LinearOperator {
 public:
  explicit DenseOperator(Matrix a);
  Index size() const override { return a_.rows(); }
  void apply(ConstMatrixView x, MatrixView y) const override;
  const Matrix& matrix() const { return a_; }

 private:
  Matrix a_;
};

/// A + D, without copying A; mostly A + s I.
class ShiftedOperator final : public LinearOperator {
 public:
  ShiftedOperator(const LinearOperator& a, Diagonal shift) : a_(a), shift_(std::move(shift)) {
    shift_.require_size(a.size(), "ShiftedOperator");
  }
  Index size() const override { return a_.size(); }
  void apply(ConstMatrixView x, MatrixView y) const override;
  const Diagonal& shift() const { return shift_; }

 private:
  const LinearOperator& a_;
  Diagonal shift_;
};

}  // namespace mercer::linalg
MERCER_API_END
