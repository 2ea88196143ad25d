// The preconditioner that `auto` stands for: none at first, then the hybrid with a rank that
// doubles. Iterations run, their rate is watched, and the next level is built as soon as what it is
// predicted to save costs more than building it; the solve goes on from where it was. So an easy
// system is never charged for a preconditioner, and a hard one gets the rank that pays.
//   Source: the rule of the ski rental problem, with the observed rate as forecast.
//   Cost:   at most the iterations before the last change of level (their solution is kept, their
//           Krylov space is not) and the builds of smaller levels, together less than the last.
#pragma once

#include <memory>
#include <vector>

#include "mercer/inference/speeds.hpp"
#include "mercer/krylov/registry.hpp"

namespace mercer::inference {

struct AdaptiveOptions {
  Speeds speeds;  // nominal ones: the choice may not depend on the clock
  OperatorKind op = OperatorKind::tiled;
  SolvePrecision precision = SolvePrecision::float64;
  Index max_rank = 2000;
  double expected_solves = 1;
  std::uint64_t seed = 0;
};

class Adaptive {
 public:
  /// The target's operators must outlive this.
  Adaptive(preconditioners::Target target, AdaptiveOptions options);
  ~Adaptive();

  /// solver(a, b, x), with as much preconditioning as pays. Later solves begin with what was built.
  /// The context's own preconditioner is not used.
  krylov::SolveResult solve(const krylov::SolverInfo& solver, const linalg::LinearOperator& a,
                            ConstMatrixView b, MatrixView x, const krylov::SolverOptions& options,
                            const krylov::SolverContext& context);

  /// What is in use; named "none" before the first build.
  const preconditioners::BuildReport& report() const;
  /// All levels built so far, the present one included.
  int levels_built() const;
  /// Seconds of all builds so far; they happen inside solve().
  double build_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The ranks that `auto` goes through for n points, smallest first.
std::vector<Index> adaptive_ranks(Index n, Index max_rank);
/// The largest rank unless memory says less.
inline constexpr Index kAdaptiveMaxRank = 2000;

}  // namespace mercer::inference
