// P = F F' + s2 I with F from the pivoted Cholesky approximation of K, inverted by Woodbury.
//   Source: Gardner et al. (2018).
//   Cost:   see approximations/pivoted_cholesky.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data; see the approximation.
#pragma once

#include "mercer/approximations/pivoted_cholesky.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {

class PivotedCholesky final : public linalg::Preconditioner {
 public:
  PivotedCholesky(const operators::KernelOperator& k, double noise_variance,
                  const approximations::PivotedCholeskyOptions& options);

  Index size() const override { return core_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override { core_.solve(r, z); }
  double log_det() const override { return core_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override { core_.sample(rng, z); }

  Index rank() const { return core_.rank(); }
  Index dropped() const { return core_.dropped(); }
  /// trace(K - F F') / trace(K).
  double relative_trace_error() const { return relative_trace_error_; }
  Index columns_evaluated() const { return columns_evaluated_; }
  /// Nothing of K was left, to rounding, before the rank asked for.
  bool exhausted() const { return exhausted_; }

 private:
  PivotedCholesky(approximations::LowRank approximation, double noise_variance);

  Woodbury core_;
  double relative_trace_error_;
  Index columns_evaluated_;
  bool exhausted_;
};

PreconditionerInfo pivoted_cholesky_info();

}  // namespace mercer::preconditioners
