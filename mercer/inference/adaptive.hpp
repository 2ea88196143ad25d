// The preconditioner that `auto` stands for: none at first; then a low-rank part, grown as long as
// the time of the whole is predicted to fall, alone or with a sparse factor for the rest (hybrid).
// It is built as soon as plain iterations are predicted to cost more, and the solve goes on from
// where it was. So an easy system is never charged for a preconditioner, and a hard one gets the
// kind and the rank that pay. When what was built breaks its promise, a larger one is considered.
//   Source: the ski rental problem: a solve is not expected to need more than four times the
//           iterations it has had. Iterations of a low-rank part follow from the trace it leaves.
//   Cost:   the iterations before a change of level (their solution is kept, their Krylov space is
//           not), and what was built before it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mercer/inference/speeds.hpp"
#include "mercer/krylov/registry.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// The largest rank that is built, unless the memory allows only less.
inline constexpr Index kAdaptiveMaxRank = 2000;
/// Iterations without a preconditioner over those with what it builds, a guess for the planner.
inline constexpr double kAdaptiveGain = 20;
/// Neighbours of the hybrid that it builds first, and at most.
inline constexpr Index kAdaptiveNeighbours = 30;
inline constexpr Index kAdaptiveMostNeighbours = 90;

struct AdaptiveOptions {
  Speeds speeds;  // nominal ones: the choice may not depend on the clock
  std::string op{operators::default_operator().name};
  SolvePrecision precision = SolvePrecision::float64;
  Index max_rank = kAdaptiveMaxRank;
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
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// Iterations of CG with P = F F' + noise I of this rank, when `trace_left` of K remains and the
/// last doubling of the rank multiplied it by `fall`.
double low_rank_iterations(double trace_left, double fall, Index rank, double noise,
                           double tolerance);

/// The ranks that `auto` may take for n points, smallest first.
std::vector<Index> adaptive_ranks(Index n, Index max_rank);
/// What the hybrid of this rank and so many neighbours costs.
preconditioners::Cost adaptive_cost(Index n, Index d, Index rank, Index neighbours);
/// The largest of these ranks that `auto` can build in so many bytes, whatever neighbours it takes;
/// 0 when none is.
Index affordable_rank(Index n, Index d, Index max_rank, double bytes);

}  // namespace mercer::inference
MERCER_API_END
