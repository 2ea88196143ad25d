// The gradient of the log marginal likelihood by solves only, for any number of points, those that
// were merged into others included:
//   dL/dtheta = 1/2 w' dH w - 1/2 tr(H^-1 dH),  w = H^-1 (y - A beta),
// with the trace estimated from probes whose solves share one block with y. All derivatives come
// from one pass over the tiles.
//   control         z ~ N(0, P) with P = (G'G)^-1 a sparse approximation of H (approximations/
//                   vecchia.hpp): tr(P^-1 dH) exactly, plus E[(H^-1 z - P^-1 z)' dH P^-1 z]
//   preconditioned  z ~ N(0, P) of the preconditioner: E[(H^-1 z)' dH (P^-1 z)]
//   pathwise        z ~ N(0, H) by random features: E[(H^-1 z)' dH (H^-1 z)]; the solves are
//                   those of posterior samples
//   rademacher, gaussian   E[(H^-1 z)' dH z] (Hutchinson)
//   Source: Cutajar et al. (2016); Wenger et al. (2022); Lin et al. (2024); the control variate
//           is derived in docs/methods/learning.md. All are unbiased but for the tolerance of the
//           solves and, pathwise, the features. With a random stop (Filippone & Engler 2015) they
//           are unbiased although solves are coarse: what is linear in solutions takes the mean of
//           two independent ones, what is quadratic takes both (unbiased_solve.hpp).
//   Cost:   iterations x one block product of 1 + q + probes columns, one pass with derivatives,
//           and N m^2 derivatives for the exact trace of `control`.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/exact/unbiased_solve.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

enum class Probes { control, preconditioned, pathwise, rademacher, gaussian };
std::string_view to_string(Probes kind);
/// Throws InvalidArgument that lists the names there are.
Probes probe_kind(std::string_view name);
std::vector<std::string_view> probe_kinds();

struct EstimatorOptions {
  Probes kind = Probes::control;
  Index probes = 8;
  bool fresh = false;       // draw new probes for every estimate, whatever use_probes() says
  bool warm_starts = true;  // begin the solves from the last solutions
  /// Solver, preconditioner, operator and precision; its tolerance is that of estimate(). With
  /// "auto" the sparse factor of `control` preconditions too, and a hybrid when that is not enough.
  SystemChoice system;
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(EstimatorOptions& o, Visitor&& field) {
  field("probes", o.probes, Positive{});
}

class EvidenceGradient {
 public:
  /// The data must outlive this.
  EvidenceGradient(const Observations& data, EstimatorOptions options);
  ~EvidenceGradient();

  /// Solves are carried to `tolerance`; stopped by the observer, there is no gradient.
  /// `error_passes` further passes over the tiles measure the
  /// standard errors, with so many degrees of freedom each (at most probes - 1). With a random stop
  /// the tolerance is that of the means of solutions, and errors are those of the probes alone. The
  /// pass over the tiles is then in float32 where its rounding is far below those errors, which is
  /// measured now and then.
  Evidence estimate(const Problem& problem, double tolerance, int error_passes = 0,
                    const Observer& observer = {},
                    const std::optional<krylov::RandomStopOptions>& random_stop = {});

  /// From now on the set of probes with this number, 0 before. The solves for others are no warm
  /// start any more, those for y and the mean are.
  void use_probes(std::uint64_t number);

  /// What the next estimate depends on besides its arguments, to resume from.
  struct State {
    Matrix solutions;   // where the last solves ended, for warm starts; empty before the first
    Vector built_at;    // log parameters that the preconditioner was made for
    bool stale = true;  // it is to be made anew
    int estimates = 0;  // so far, which names the streams of fresh probes
    int level = 0;      // of preconditioning with "auto"
    int iterations_when_new = 0;
    std::uint64_t probes = 0;  // which set of them
    /// The rounding of a pass in float32 in standard errors of the gradient, as measured last.
    double pass_error = std::numeric_limits<double>::infinity();
  };
  const State& state() const;
  /// `like` has the kernel and the mean of the problems to come, with any values.
  void resume(State state, const Problem& like);

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::inference
MERCER_API_END
