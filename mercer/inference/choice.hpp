// A complete choice of method for H x = b, H = K + D: what `auto` has become after planning.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mercer/krylov/random_stop.hpp"
#include "mercer/operators/registry.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// double: float64 products. mixed: float32 products inside, double refinement outside.
/// single: float32 products only (the residual is still measured in double).
enum class SolvePrecision { float64, mixed, float32 };

std::string_view to_string(SolvePrecision precision);
/// The arithmetic of the products inside the iteration.
inline operators::Precision product_precision(SolvePrecision precision) {
  return precision == SolvePrecision::float64 ? operators::Precision::float64
                                              : operators::Precision::float32;
}

/// The solver that factors H; the others iterate (solvers.hpp).
inline constexpr std::string_view kCholesky = "cholesky";

struct SystemChoice {
  std::string solver{kCholesky};  // a name of solvers.hpp
  /// A name of the preconditioners' registry, "none", or "auto": see adaptive.hpp.
  std::string preconditioner = "none";
  /// With "auto", `rank` is the largest that may be built (memory).
  preconditioners::PreconditionerOptions preconditioning;
  std::string op{operators::default_operator().name};  // a name of the operators' registry
  SolvePrecision precision = SolvePrecision::float64;
  double tolerance = 1e-6;  // |b - H x| <= tolerance |b|, column by column
  int max_iterations = 1000;
  /// Iterations in which the residual must halve, or the solve gives up; unset: the solver's rule.
  std::optional<int> stagnation_window;
  /// With "auto": solves that will share the preconditioner; it may cost more to build then.
  double expected_solves = 1;
  /// Of a solver that is unbiased; else unset.
  std::optional<krylov::RandomStopOptions> random_stop = {};

  bool direct() const { return solver == kCholesky; }
};

}  // namespace mercer::inference
MERCER_API_END
