// log|H| of a matrix known by its products, with the spread of the estimate: preconditioned
// stochastic Lanczos quadrature.
//   log|H| = log|P| + tr log(P^-1/2 H P^-1/2), the trace by probes z ~ N(0, P): for each, N times
//   the Gauss quadrature of log in the spectral measure of P^-1/2 z, whose Jacobi matrix is made of
//   the coefficients of preconditioned conjugate gradients on H x = z.
//   Source: Ubaru, Chen & Saad (2017); Wenger et al. (2022) for the preconditioner, without which
//           the spread is useless. N instead of |P^-1/2 z|^2: directions alone are uniform, so the
//           mean is the same and the spread of the length is left out.
//   Cost:   iterations x one block product. The Gauss rule is an upper bound for each probe (log
//           has negative even derivatives); how far the last rounds still moved is the solver
//           error.
#pragma once

#include "mercer/krylov/solver.hpp"

namespace mercer::inference {

struct LogDeterminantOptions {
  Index probes = 10;
  double tolerance = 1e-3;  // of the solves; the quadrature converges twice as fast
  int max_iterations = 200;
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(LogDeterminantOptions& o, Visitor&& field) {
  field("probes", o.probes, Positive{});
  field("tolerance", o.tolerance, BelowOne{});
  field("max_iterations", o.max_iterations, Positive{});
}

struct LogDeterminant {
  double value = 0;
  double probe_error = 0;   // standard error of the mean over probes
  double solver_error = 0;  // how far the quadratures are from their limit, at most over probes
  int iterations = 0;
  std::int64_t matvecs = 0;
  StopReason stop = StopReason::converged;
  bool positive = true;  // no Ritz value was zero or below
};

/// P must have log_det() and sample().
LogDeterminant log_determinant(const linalg::LinearOperator& h, const linalg::Preconditioner& p,
                               const LogDeterminantOptions& options = {},
                               const Observer& observer = {});

/// e_1' log(T) e_1 of the Lanczos matrix T that the first `count` coefficients make; -inf when T is
/// not positive.
double lanczos_log(const krylov::CgCoefficients& coefficients, std::size_t count);

}  // namespace mercer::inference
