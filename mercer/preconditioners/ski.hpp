// P = W K_grid W' + noise, the kernel interpolated from a regular grid, solved by conjugate
// gradients inside: its products are quick, whatever those with K cost.
//   Source: Wilson & Nickisch (2015); Cutajar et al. (2016) as a preconditioner.
//   Cost:   the grid (approximations/grid_interpolation.hpp); an application is an inner solve of
//           about as many steps as plain iterations take, each of N 4^d flops and a grid product.
//   When not: more than three or four inputs, or lengthscales below the step of the grid; kernels
//           that are not stationary.
//
// P changes from step to step: for flexible solvers. Its inner products are with the grid, not
// with K.
#pragma once

#include "mercer/approximations/grid_interpolation.hpp"
#include "mercer/preconditioners/inner_solve.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

class Ski final : public linalg::Preconditioner, public linalg::InnerIterations {
 public:
  /// Throws InvalidArgument where there is no grid (approximations::grid_refusal).
  Ski(const kernels::Kernel& kernel, ConstMatrixView points, const linalg::Diagonal& noise,
      double inner_tolerance);

  Index size() const override { return k_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { inner_.refuse("log determinant"); }
  void sample(Rng&, MatrixView) const override { inner_.refuse("sample"); }

  std::int64_t inner_iterations() const override { return inner_.iterations(); }
  std::int64_t inner_products() const override { return inner_.products(); }
  const approximations::GridInterpolation& approximation() const { return k_; }

 private:
  InnerSolve inner_;
  approximations::GridInterpolation k_;
  linalg::ShiftedOperator p_;
};

PreconditionerInfo ski_info();

}  // namespace mercer::preconditioners
