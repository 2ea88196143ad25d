// H = K + D of one data set, D its noise, prepared once and solved many times: by Cholesky, or by a
// Krylov method over an operator of the registry with a preconditioner, in double, mixed or single
// precision. Every solve ends with the true residual in double precision.
#pragma once

#include <memory>
#include <string>

#include "mercer/core/history.hpp"
#include "mercer/inference/choice.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/krylov/solver.hpp"
#include "mercer/krylov/trail.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/registry.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// The products of one solve.
struct Operators {
  std::unique_ptr<operators::KernelOperator> exact;  // in double: the truth of every residual
  std::unique_ptr<operators::KernelOperator> fast;   // in float32, for mixed and single; else null
};
/// `op` is a name of the operators' registry. With float32 products it computes those of the
/// iteration, and the default operator the few in double.
Operators make_operators(const kernels::Kernel& kernel, const Matrix& x, std::string_view op,
                         SolvePrecision precision);

/// What a solve did and how good its answer is.
struct SystemReport {
  StopReason stop = StopReason::converged;
  int iterations = 0;
  int inner_iterations = 0;
  std::int64_t matvecs = 0;      // single-column products with K, verification included
  double seconds = 0;            // without those of building a preconditioner
  double relative_residual = 0;  // true, in double, the worst column
  Vector residual_norms;         // |b - H x| per column, true, in double
  /// Estimates of |x - H^-1 b|_H^2 per column (krylov/energy_error.hpp), in place of those not
  /// known infinity; empty when the solver has none, and by a factor.
  Vector energy_errors;
  History residuals = History(1);
  /// Of a solver that is unbiased, one per column: x is then right on average.
  std::vector<krylov::RandomStop> random_stops;
  bool fell_back_to_double = false;
};

class Adaptive;

/// H = K + D for one iterative solve; nothing here is owned.
struct IterativeSystem {
  const Operators& k;
  const linalg::Diagonal& noise;
  const SystemChoice& choice;  // its solver, precision and limit of iterations
  const linalg::Preconditioner* preconditioner = nullptr;
  Adaptive* adaptive = nullptr;  // instead of it
};
/// What the choice says to a solver, and what the result of one says.
krylov::SolverOptions solver_options(const SystemChoice& choice, double tolerance);
SystemReport report_of(krylov::SolveResult result);

/// x = H^-1 b from the first guess x, to |b - H x| <= tolerance |b| in double, whatever the
/// precision of the products; `residual`, when not null, becomes b - H x, and `trail` is offered
/// solutions on the way where the solver has them.
SystemReport solve_iteratively(const IterativeSystem& system, ConstMatrixView b, MatrixView x,
                               double tolerance, const Observer& observer = {},
                               Matrix* residual = nullptr, krylov::Trail* trail = nullptr);

/// SystemReport::energy_errors of a solve that kept its coefficients.
Vector energy_errors(const krylov::SolveResult& result);

/// What the report says of x: the residual b - H x in double, which `residual`, when not null,
/// becomes; one product.
void measure_residual(const Operators& k, const linalg::Diagonal& noise, ConstMatrixView b,
                      ConstMatrixView x, Matrix* residual, SystemReport& report);

class RegularizedSystem {
 public:
  /// Builds the factor, or the operator and the preconditioner. When the Cholesky factorisation
  /// meets a matrix that is not positive definite in floating point, jitter (1e-10 .. 1e-6 times
  /// the mean diagonal) is added to the noise; it is reported, never hidden.
  RegularizedSystem(const kernels::Kernel& kernel, linalg::Diagonal noise, const Matrix& x,
                    SystemChoice choice);
  /// The same over products that several systems share: one K under different noise, solvers and
  /// preconditioners. `k` must be what make_operators gives for the operator and the precision of
  /// `choice`. Seconds of building do not include those of `k`.
  RegularizedSystem(std::shared_ptr<const Operators> k, linalg::Diagonal noise,
                    SystemChoice choice);
  ~RegularizedSystem();
  RegularizedSystem(RegularizedSystem&&) noexcept;

  /// x = H^-1 b; x is the first guess of iterative methods (zeros are fine).
  SystemReport solve(ConstMatrixView b, MatrixView x, const Observer& observer = {}) const;
  /// The same with another tolerance; `residual`, when not null, becomes b - H x, in double, and
  /// `trail` is offered solutions on the way where the solver has them.
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                     const Observer& observer = {}, Matrix* residual = nullptr,
                     krylov::Trail* trail = nullptr) const;

  const SystemChoice& choice() const;
  /// D, the noise variances of H, jitter included.
  const linalg::Diagonal& noise() const;
  double jitter() const;
  /// Seconds to factor or to build operator and preconditioner (with `auto`, those built so far).
  double build_seconds() const;
  /// What building the preconditioner did; named "none" when there is none. With `auto`, the one
  /// that the last solve ended with.
  const preconditioners::BuildReport& preconditioner_report() const;
  /// The factor, when the method is Cholesky.
  const linalg::Cholesky* factor() const;

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::inference
MERCER_API_END
