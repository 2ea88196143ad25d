// Laplace's approximation for any likelihood that factorises over the points, and for several
// latent functions at once that share one kernel, independent (one-vs-rest classes) or coupled in
// the likelihood of a row (softmax): the mode of the posterior by Newton's method, and what the
// gradients of its log evidence need there.
//   psi(a) = sum log p(y | f) - 1/2 a'K a,  f = K a + offset;  at the mode a = g, the gradient of
//   log p. A step is d = r - R B^-1 R'K r with r = g - a and W = R R' (R = S = W^1/2 for
//   independent functions): no N x N matrix is formed, and nothing is divided by W. log q(y) = psi
//   - 1/2 log|B|,  B = I + R'K R. With a mean of basis A, f = K a + A beta + offset, and beta has a
//   flat prior: at the mode A'a = 0. With Q = R B^-1 R' and M = A'Q A the step of beta is t = M^-1
//   A'(a + d), and d becomes d - Q A t. The evidence is that of the best beta (a profile), as in
//   regression. Source: Rasmussen & Williams (2006), algorithms 3.1 and 5.1; Cutajar et al. (2016),
//           supplement. W is the expected information where the observed one may be negative
//           (student-t): Hartmann & Vanhatalo (2019).
//   How good: for a log-concave likelihood the negative Hessian of psi is at least K^-1, so without
//           a mean the latent mean anywhere is within sqrt(k**) sqrt(r'K r) of the one at the exact
//           mode. For coupled functions r and K r are stacked: r'K r is the sum over all of them,
//           and bounds each.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "mercer/inference/laplace/laplace_system.hpp"
#include "mercer/inference/laplace/local_likelihood.hpp"
#include "mercer/inference/problem.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct NewtonOptions {
  double tolerance = 1e-6;  // of the latent mean, by the bound above (absolute: f is of order 1)
  double solve_tolerance = 1e-3;   // of the linear solve of a step, relative
  double basis_tolerance = 1e-10;  // of the solves of the mean at the mode, relative
  int max_steps = 100;             // 0: the start is only measured
  bool with_change = false;        // LaplaceMode::missing, which may take a further solve
};

template <class Visitor>
void visit_fields(NewtonOptions& o, Visitor&& field) {
  field("tolerance", o.tolerance, Positive{});
  field("solve_tolerance", o.solve_tolerance, BelowOne{});
  field("basis_tolerance", o.basis_tolerance, BelowOne{});
  field("max_steps", o.max_steps, NonNegative{});
  field("with_change", o.with_change, Any{});
}

struct LaplaceMode {
  Matrix a;                // N x C; empty: not found yet
  Matrix f;                // K a + offset
  Matrix w;                // curvature at f; coupled functions: its weights (curvature_root.hpp)
  Matrix beta;             // q x C: coefficients of the mean
  double log_density = 0;  // sum log p(y | f)
  double quadratic = 0;    // sum of a'K a
  // sqrt(r'K r) of every function, of all when they are coupled: times sqrt(k**), the bound on its
  // mean.
  Vector residual;
  // Of the mean at the mode, functions side by side; empty without one.
  Matrix basis_solves;        // N x q C: Q A
  Matrix beta_covariance;     // q x q C: (A'Q A)^-1
  double trend_defect = 0;    // |M^-1/2 A'g|, the largest: how far beta is from optimal
  double trend_residual = 0;  // at least |H^-1/2 E M^-1/2| of the solves, E = A - (K + W^-1) Q A
  // Where rounding keeps the residual above the tolerance: sqrt(r'(K^-1 + W)^-1 r), the distance of
  // the latent mean from the mode in posterior standard deviations, to first order; else unset.
  std::optional<double> decrement;
  // About what is missing of a and beta to those of the exact mode, when it was asked for: the last
  // Newton step times the fall of the residual in it, or the next step where there was none.
  Matrix missing, missing_beta;
  StopReason stop = StopReason::iteration_limit;
  int steps = 0;       // of Newton
  int halvings = 0;    // of a step that went too far
  int iterations = 0;  // of the solves
  std::int64_t matvecs = 0;

  double psi() const { return log_density - 0.5 * quadratic; }
};

/// Throws InvalidArgument when the likelihood couples functions and the mean or the preconditioner
/// does not go with that.
void check_coupling(const likelihoods::Likelihood& likelihood, MeanKind mean,
                    const std::string& preconditioner);

/// From `start` (zero when its a is empty; its f, where there is one, may be that of another
/// kernel's mode). On return the system's curvature is that of the mode.
/// The observer is told the bound after every step, and the residual within one; the number is that
/// of the step.
LaplaceMode find_mode(const Problem& problem, const Observations& data, LaplaceSystem& system,
                      LaplaceMode start, const NewtonOptions& options,
                      const Observer& observer = {});

/// What the gradients of an evidence need of the likelihood at the mode, N x C each.
struct ModeSlopes {
  Matrix gradient;         // g, of log p
  Matrix curvature_ratio;  // (dW/df) / W; empty when functions are coupled
  bool implicit = false;   // W depends on f
};
ModeSlopes mode_slopes(const Problem& problem, const Observations& data, const LaplaceMode& mode);

/// Writes E = Sigma W of a row, C x C.
using FillBlock = std::function<void(Index row, Matrix& e)>;
/// u of coupled functions, N x C: -1/2 tr(Sigma dW/df) of every entry of f.
Matrix coupled_slopes(const Problem& problem, const LaplaceMode& mode, const FillBlock& fill);

/// What a mean adds to the implicit part of a gradient. Its beta moves with the hyperparameters as
/// well: s becomes s - Q A t with t = M^-1 A's, and K s of that gets A t on top. Nothing without a
/// mean. The mode must outlive it.
class TrendPart {
 public:
  TrendPart(const Problem& problem, const Observations& data, const LaplaceMode& mode);
  /// s of function j; then K s of it.
  void project(Index j, VectorView s);
  void add_to(Index j, VectorView ks) const;

 private:
  const LaplaceMode& mode_;
  Matrix basis_, t_;  // t_: q x C
};

/// The part of the gradient that belongs to the likelihood's own parameters:
///   sum d log p - 1/2 sum Sigma_jj dW_j + (K s)'dg,
/// with Sigma_jj W_j and K s given, N x C.
Vector likelihood_gradient(const Problem& problem, const Observations& data,
                           const LaplaceMode& mode, ConstMatrixView sigma_w, ConstMatrixView ks);

}  // namespace mercer::inference
MERCER_API_END
