// The gradient of a Laplace approximation's log evidence by solves only, for any number of points.
// With Q = (K + W^-1)^-1 = R B^-1 R' and Rademacher probes r, q = Q r:
//   tr(Q dK)      ~ mean of q'dK r
//   Sigma W       ~ mean of (K q) r' (its diagonal, or C x C blocks of coupled functions),
//                   Sigma = (K^-1 + W)^-1
//   u = -1/2 tr(Sigma dW/df), s = u - Q K u (one adjoint solve for all parameters):
//   d log q       = 1/2 a'dK a - 1/2 tr(Q dK) + s'dK g.
//   Source: Cutajar et al. (2016), supplement; the adjoint form is derived in
//           docs/methods/classification.md.
//           Unbiased but for the tolerances of the mode and of the solves.
//   Cost:   Newton's method from the last mode, probes + 1 solves a function, two passes with
//           derivatives (and two more for the standard error).
#pragma once

#include <memory>

#include "mercer/inference/laplace/laplace.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct LaplaceEstimatorOptions {
  Index probes = 8;
  bool fresh = false;  // new probes for every estimate, whatever use_probes() says
  SystemChoice system;
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(LaplaceEstimatorOptions& o, Visitor&& field) {
  field("probes", o.probes, Positive{});
}

struct LaplaceEstimate {
  Vector gradient;        // in problem.log_parameters(); empty when stopped by the observer
  Vector standard_error;  // from one contrast of the probes; empty when not asked for
  LaplaceMode mode;
  int iterations = 0;  // of the solves for probes, the most; Newton's are in the mode
  double relative_residual = 0;
  StopReason stop = StopReason::converged;
  std::int64_t matvecs = 0;
};

class LaplaceGradient {
 public:
  /// The data must outlive this.
  LaplaceGradient(const Observations& data, LaplaceEstimatorOptions options);
  ~LaplaceGradient();

  /// `tolerance` is relative for the solves and absolute for the mode's bound.
  LaplaceEstimate estimate(const Problem& problem, double tolerance, bool with_error,
                           const Observer& observer = {});

  /// From now on the set of probes with this number, 0 before.
  void use_probes(std::uint64_t number);

  /// What the next estimate depends on besides its arguments, to resume from.
  struct State {
    Matrix mode;       // a of the last estimate
    Matrix latent;     // f there
    Matrix solutions;  // B^-1 R'r of its probes, stacked
    int estimates = 0;
    std::uint64_t probes = 0;  // which set of them
  };
  const State& state() const { return state_; }
  void resume(State state) { state_ = std::move(state); }

 private:
  const Observations& data_;
  LaplaceEstimatorOptions options_;
  State state_;
};

}  // namespace mercer::inference
MERCER_API_END
