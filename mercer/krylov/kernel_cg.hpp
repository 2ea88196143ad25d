// Kernel conjugate gradients: minimises over f = sum alpha_i k(x_i, .)
//   P(alpha) = sum_i loss(f_i, y_i) + lambda/2 |f|^2,   f = K alpha,  |f|^2 = alpha' K alpha
// with the gradient and all inner products of the kernel's own function space. The gradient has
// coefficients gamma = loss'(f) + lambda alpha: the condition number of K does not enter twice.
//   Source: Ratliff & Bagnell (2007), Kernel conjugate gradient for fast kernel machines.
//   Cost:   one block product with K per iteration and about 40 N flops a column (logistic: 3-5
//           passes of exponentials besides); one more product every 50 iterations, two to check
//           the answer. Workspace (6 t + 4) N doubles.
//   When not: least squares alone: cg on K + lambda I searches the same space with less work per
//           step and takes a preconditioner.
//
// Each column of y runs its own iteration; products are shared, columns that are done leave the
// block. Every column carries a bound of how far P is above its minimum, from numbers that are at
// hand (no product):
//   P - min P <= min( sum_i [loss(f_i) + loss*(-lambda alpha_i) + lambda alpha_i f_i],
//                     gamma' K gamma / (2 lambda) ).
// The first is the duality gap at the dual point alpha itself (least squares: |gamma|^2 / 2); for
// the logistic loss it is finite only while 0 <= lambda y_i alpha_i <= 1. The second holds because
// P is strongly convex, lambda, in the norm of the function space. See docs/methods/kernel_cg.md.
// Rows may be shared among ranks: y and alpha are then the rows held here.
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/core/history.hpp"
#include "mercer/core/options.hpp"
#include "mercer/linalg/linear_operator.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

enum class KernelLoss {
  squared,   // (f - y)^2 / 2: regularised least squares
  logistic,  // log(1 + exp(-y f)), y = -1 or +1: kernel logistic regression
};

/// What is minimised, besides K and y.
struct RegularizedLoss {
  KernelLoss loss = KernelLoss::squared;
  double lambda = 1;  // positive
};

struct KernelCgOptions {
  double tolerance = 1e-6;  // stop when 2 (P - D) / (|P| + |D|) falls to it, D <= min P
  int max_iterations = 1000;
  int refresh_interval = 50;  // iterations between products that make f = K alpha anew
};

template <class Visitor>
void visit_fields(KernelCgOptions& o, Visitor&& field) {
  field("tolerance", o.tolerance, Positive{});
  field("max_iterations", o.max_iterations, Positive{});
  field("refresh_interval", o.refresh_interval, Positive{});
}

struct KernelCgResult {
  StopReason stop = StopReason::converged;  // `converged` only when every column is
  std::vector<StopReason> column_stops;
  int iterations = 0;  // the largest of column_iterations
  std::vector<int> column_iterations;
  /// Row k is after k iterations, row 0 at the first guess; a column that is done repeats its last
  /// entry. From the recurrence between refreshes, from K alpha in the last row.
  History objectives;  // P
  History gaps;        // P - D, a bound of P - min P
  /// At the end, from products made anew.
  Vector objective, gap, relative_gap;
  std::int64_t matvecs = 0;  // single-column products, checks included
  int restarts = 0;          // directions begun anew from the gradient, summed over columns
  double seconds = 0;

  bool converged() const { return stop == StopReason::converged; }
};

/// Minimises P for each column of y (N x t); alpha (N x t) is the first guess in, the minimiser
/// out. Zero columns of alpha cost no product. The observer sees the largest relative gap.
KernelCgResult kernel_cg(const linalg::LinearOperator& k, const RegularizedLoss& problem,
                         ConstMatrixView y, MatrixView alpha, const KernelCgOptions& options = {},
                         const Observer& observer = {});

/// The same objective by nonlinear conjugate gradients on the coefficients, with Euclidean inner
/// products: what kernel_cg is measured against. The gradient is K gamma, and a step along it needs
/// K K gamma: two products per iteration, and the condition number of K enters once more.
KernelCgResult coefficient_cg(const linalg::LinearOperator& k, const RegularizedLoss& problem,
                              ConstMatrixView y, MatrixView alpha,
                              const KernelCgOptions& options = {}, const Observer& observer = {});

/// Workspace of kernel_cg in bytes, and flops per iteration besides products (least squares).
double kernel_cg_bytes(Index n, Index columns);
double kernel_cg_flops(Index n, Index columns);

}  // namespace mercer::krylov
MERCER_API_END
