// H = K + s2 I of one data set, prepared once and solved many times: by Cholesky, or by a Krylov
// method over a tiled or stored operator with a preconditioner, in double, mixed or single
// precision. Every solve ends with the true residual in double precision.
#pragma once

#include <memory>
#include <string>

#include "mercer/core/history.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/kernel_operator.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::inference {

/// How products with K are computed.
enum class OperatorKind { tiled, stored };
/// double: float64 products. mixed: float32 products inside, double refinement outside.
/// single: float32 products only (the residual is still measured in double).
enum class SolvePrecision { float64, mixed, float32 };

std::string_view to_string(OperatorKind kind);
std::string_view to_string(SolvePrecision precision);

/// A complete choice of method: what `auto` has become after planning.
struct SystemChoice {
  std::string solver = "cholesky";      // "cholesky" or a name of krylov's registry
  std::string preconditioner = "none";  // a name of the preconditioners' registry, or "none"
  preconditioners::PreconditionerOptions preconditioning;
  OperatorKind op = OperatorKind::tiled;
  SolvePrecision precision = SolvePrecision::float64;
  double tolerance = 1e-6;  // |b - H x| <= tolerance |b|, column by column
  int max_iterations = 1000;
};

/// What a solve did and how good its answer is.
struct SystemReport {
  StopReason stop = StopReason::converged;
  int iterations = 0;
  int inner_iterations = 0;
  std::int64_t matvecs = 0;  // single-column products with K, verification included
  double seconds = 0;
  double relative_residual = 0;  // true, in double, the worst column
  Vector residual_norms;         // |b - H x| per column, true, in double
  History residuals;
  bool fell_back_to_double = false;
};

class RegularizedSystem {
 public:
  /// Builds the factor, or the operator and the preconditioner. When the Cholesky factorisation
  /// meets a matrix that is not positive definite in floating point, jitter (1e-10 .. 1e-6 times
  /// the mean diagonal) is added to the noise; it is reported, never hidden.
  RegularizedSystem(const kernels::Kernel& kernel, double noise, const Matrix& x,
                    SystemChoice choice);
  ~RegularizedSystem();
  RegularizedSystem(RegularizedSystem&&) noexcept;

  /// x = H^-1 b; x is the first guess of iterative methods (zeros are fine).
  SystemReport solve(ConstMatrixView b, MatrixView x, const Observer& observer = {}) const;
  /// The same with another tolerance.
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance,
                     const Observer& observer = {}) const;

  /// r = b - H x, in double; one product per column.
  void residual(ConstMatrixView b, ConstMatrixView x, MatrixView r) const;

  const SystemChoice& choice() const;
  /// The noise variance of H, jitter included.
  double noise() const;
  double jitter() const;
  /// Seconds to factor or to build operator and preconditioner.
  double build_seconds() const;
  /// What building the preconditioner did; without a name when there is none.
  const preconditioners::BuildReport& preconditioner_report() const;
  /// The factor, when the method is Cholesky.
  const linalg::Cholesky* factor() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::inference
