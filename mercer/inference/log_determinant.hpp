// log|H| of a matrix known by its products, with the spread of the estimate: preconditioned
// stochastic Lanczos quadrature.
//   log|H| = log|P| + tr log(P^-1/2 H P^-1/2), the trace by probes z ~ N(0, P): for each, N times
//   the Gauss quadrature of log in the spectral measure of P^-1/2 z, whose Jacobi matrix is made of
//   the coefficients of preconditioned conjugate gradients on H x = z.
//   Source: Ubaru, Chen & Saad (2017); Wenger et al. (2022) for the preconditioner, without which
//           the spread is useless. N instead of |P^-1/2 z|^2: directions alone are uniform, so the
//           mean is the same and the spread of the length is left out.
//   Cost:   iterations x one block product, and one more solve with P.
//   Error:  the Gauss rule is an upper bound for each probe (log has negative even derivatives).
//           With log x = int_0^inf 1/(1+t) - 1/(x+t) dt its error is an integral of errors of
//           1/(x+t), and those are the energies of the errors of conjugate gradients on A + t,
//           A = P^-1/2 H P^-1/2, whose residuals are multiples of that on A:
//             error = int_0^inf prod_i (theta_i / (theta_i + t))^2 r'(A + t)^-1 r dt / |r_0|^2
//                  <= |r|^2 / |r_0|^2 int_0^inf prod_i (theta_i / (theta_i + t))^2 / (lambda + t)
//                  dt
//           with the Ritz values theta_i, the last residual r and the smallest eigenvalue lambda
//           of A. It is therefore known from r, however the iteration came there.
#pragma once

#include <optional>

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
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
  double solver_error = 0;  // the largest error of a quadrature, by the bound of lanczos_log
  int iterations = 0;
  std::int64_t matvecs = 0;
  StopReason stop = StopReason::converged;
  bool positive = true;  // no Ritz value was zero or below
};

/// P must have log_det() and sample(). Rows may be shared among ranks: the probes are those of one
/// process.
LogDeterminant log_determinant(const linalg::LinearOperator& h, const linalg::Preconditioner& p,
                               const LogDeterminantOptions& options = {},
                               const Observer& observer = {});

/// e_1' log(T) e_1 of the Lanczos matrix T of a column: at least r_0' log(A) r_0 / |r_0|^2, and by
/// at most `error` more.
struct LanczosLog {
  double value = 0;  // -inf when T is not positive
  double error = 0;  // the bound above
};
/// `last_energy` is <r, z> after the last iteration. `lambda` is at most the smallest eigenvalue of
/// A; when unset it is taken for half the smallest Ritz value, and the bound is an estimate until
/// that has settled.
LanczosLog lanczos_log(const krylov::CgCoefficients& coefficients, double last_energy,
                       std::optional<double> lambda = {});

}  // namespace mercer::inference
MERCER_API_END
