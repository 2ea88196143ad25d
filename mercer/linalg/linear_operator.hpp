// The two interfaces that Krylov methods see. They know nothing of kernels, so solvers are tested
// on small dense matrices. Rows may be shared among ranks (row_space.hpp): each then holds its rows
// of every vector, and whatever wraps an operator or a preconditioner hands its row space on.
#pragma once

#include <cstdint>

#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"
#include "mercer/linalg/diagonal.hpp"
#include "mercer/linalg/row_space.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

/// A symmetric matrix known by its action; columns of x are separate right-hand sides.
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;
  /// Rows held here, N when no other rank holds any.
  virtual Index size() const = 0;
  /// The rows held here; its size is size().
  virtual RowSpace row_space() const { return RowSpace::local(size()); }
  /// y = A x, for N x t blocks; x and y may not overlap. All ranks call it together.
  virtual void apply(ConstMatrixView x, MatrixView y) const = 0;
};

/// P close to A and cheap to invert.
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  virtual Index size() const = 0;
  /// As the operator's; a solver refuses a preconditioner of other rows than the operator's.
  virtual RowSpace row_space() const { return RowSpace::local(size()); }
  /// z = P^-1 r. All ranks call it together, as the following two.
  virtual void solve(ConstMatrixView r, MatrixView z) const = 0;
  /// Of the whole P, on every rank.
  virtual double log_det() const = 0;
  /// Columns of z ~ N(0, P), the rows held here; `rng` is in the same state on all ranks.
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

/// A + D, without copying A; mostly A + s I. D has the rows held here.
class ShiftedOperator final : public LinearOperator {
 public:
  ShiftedOperator(const LinearOperator& a, Diagonal shift) : a_(a), shift_(std::move(shift)) {
    shift_.require_size(a.size(), "ShiftedOperator");
  }
  Index size() const override { return a_.size(); }
  RowSpace row_space() const override { return a_.row_space(); }
  void apply(ConstMatrixView x, MatrixView y) const override;
  const Diagonal& shift() const { return shift_; }

 private:
  const LinearOperator& a_;
  Diagonal shift_;
};

}  // namespace mercer::linalg
MERCER_API_END
