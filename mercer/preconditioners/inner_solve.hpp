// Conjugate gradients inside a preconditioner, with counts: z = A^-1 r to a loose tolerance.
//   Cost: its products, and 4 N t doubles of workspace while it runs.
#pragma once

#include <atomic>
#include <cstdint>

#include "mercer/linalg/linear_operator.hpp"

namespace mercer::preconditioners {

class InnerSolve {
 public:
  /// Throws unless 0 < tolerance < 1. `owner` names the preconditioner in messages.
  InnerSolve(double tolerance, const char* owner);

  /// With a cheaper `low` beside A: all products are with `low` while the tolerance is above what
  /// float32 can reach; below, residuals are those of A itself. Where `low` is too coarse to go on
  /// (breakdown, stagnation), A finishes the work.
  void operator()(const linalg::LinearOperator& a, const linalg::LinearOperator* low,
                  ConstMatrixView r, MatrixView z) const;

  double tolerance() const { return tolerance_; }
  std::int64_t iterations() const { return iterations_.load(); }
  std::int64_t products() const { return products_.load(); }
  std::int64_t exact_products() const { return exact_products_.load(); }  // of these, with A

  /// Throws InvalidArgument: a P that is known by inner solves has no determinant or root.
  [[noreturn]] void refuse(const char* what) const;

 private:
  double tolerance_;
  const char* owner_;
  mutable std::atomic<std::int64_t> iterations_{0}, products_{0}, exact_products_{0};
};

}  // namespace mercer::preconditioners
