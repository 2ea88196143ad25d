// P = K + noise + delta I, solved by conjugate gradients with float32 products: an easier system of
// the same kind inside each step of the outer one.
//   Source: Srinivasan et al. (2014); Cutajar et al. (2016) with delta = 100 s2.
//   Cost:   nothing to build but the points in float32; each application is an inner solve.
//   When not: mostly. Outer steps become few, but each takes a whole inner solve: products in all
//           are 1.5 to 5 times those of plain CG (figures below), and it pays only as far as
//           float32 products are cheaper than exact ones.
//
// P changes from step to step: for flexible solvers. It counts its iterations and products.
#pragma once

#include <memory>

#include "mercer/preconditioners/inner_solve.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

/// 10 s2 (of unequal noise, the harmonic mean), or 1e-3 without noise.
double default_delta(const linalg::Diagonal& noise);
/// Concrete (N = 1030, rbf, s2 = 1e-4, delta = 10 s2, to an rms of 1e-5), products in all at
/// lengthscales 0.1, 1, 10, and outer steps at 1: tolerance 0.3: 257, 3775, 1594, 41; 0.1: 291,
/// 4211, 1895, 24; 0.03: 377, 6944, 2890, 22; plain CG 181, 2600, 402. From 0.03 down the outer
/// steps fall no further, from 0.3 up they grow faster than the inner ones shrink.
constexpr double default_inner_tolerance = 0.1;

class Regularized final : public linalg::Preconditioner, public linalg::InnerIterations {
 public:
  /// target.k (and target.fast when given) must outlive this.
  Regularized(const Target& target, double delta, double inner_tolerance);

  Index size() const override { return exact_.size(); }
  linalg::RowSpace row_space() const override { return exact_.row_space(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { inner_.refuse("log determinant"); }
  void sample(Rng&, MatrixView) const override { inner_.refuse("sample"); }

  std::int64_t inner_iterations() const override { return inner_.iterations(); }
  std::int64_t inner_products() const override { return inner_.products(); }
  const InnerSolve& inner() const { return inner_; }

 private:
  InnerSolve inner_;
  std::unique_ptr<operators::KernelOperator> own_fast_;  // null when none was made
  linalg::ShiftedOperator exact_, fast_;
  bool has_fast_;  // otherwise fast_ is exact_
};

PreconditionerInfo regularized_info();

}  // namespace mercer::preconditioners
