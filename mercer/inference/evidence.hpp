// The log evidence (log marginal likelihood) at fixed hyperparameters, and its gradient: exact,
// estimated from solves, or of an approximation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mercer/core/history.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// What an evidence is: that of the exact model, a lower bound of it, or that of an approximate
/// model, which may be on either side.
enum class EvidenceKind { exact, bound, approximate };
inline std::string_view to_string(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::exact:
      return "exact";
    case EvidenceKind::bound:
      return "bound";
    case EvidenceKind::approximate:
      return "approximate";
  }
  return "unknown";
}

/// How the right-hand sides of an estimate stopped by their draws (exact/unbiased_solve.hpp).
struct RandomStops {
  Index solves = 0;            // right-hand sides that stopped by a draw
  Index continued = 0;         // of these, with more than the one step that no draw refuses
  Index extra_iterations = 0;  // after the early tolerance, summed over them
  /// An unbiased estimate of E |xhat - x|_H^2 / |x|_H^2 for the right-hand side y.
  double relative_variance = 0;
  /// Where the pass over the tiles was in float32: its rounding in standard errors of the gradient,
  /// as measured last.
  std::optional<double> pass_error = {};
};

/// One evaluation. Estimates by solves have a gradient with its noise but no value.
struct Evidence {
  double value = 0;        // gradients by solves have none
  double value_error = 0;  // standard error of an estimated value
  Vector gradient;         // in problem.log_parameters(); empty when not asked for, or interrupted
  Vector standard_error;   // of each entry of an estimated gradient; empty when not measured
  /// Columns d with mean zero whose mean d d' is the covariance of the gradient.
  Matrix contrasts;
  Matrix information;  // expected information of the parameters, where the method has it
  StopReason stop = StopReason::converged;
  int iterations = 0;             // of the solves
  std::int64_t matvecs = 0;       // single-column products with K
  double relative_residual = 0;   // of the solves, the worst column
  Index raised_conditionals = 0;  // Vecchia: not positive definite to rounding, and mended
  std::optional<RandomStops> random_stops = {};  // where all solves stopped by draws (Ask)
};

/// The log evidence of a fitted model, with an interval where it is estimated.
struct LikelihoodValue {
  bool known = false;
  double value = 0, low = 0, high = 0;  // on the scale of the model; exact methods have low = high
  std::string method;                   // "cholesky", "cholesky-subset", "lanczos" or "none"
  std::string reason;                   // why it is not known
  double probe_error = 0;               // lanczos: standard error from the probes
  double solver_error = 0;              // lanczos: what its solves may still hide
  Index rows = 0;
  Vector gradient;  // in the log parameters, at the values kept; empty when not computed
};

}  // namespace mercer::inference
MERCER_API_END
