#include "mercer/inference/laplace/laplace_posterior.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/error_estimate.hpp"
#include "mercer/inference/exact/likelihood_value.hpp"

namespace mercer::inference {
namespace {

// Probes of the log determinant of an iterative system, for its evidence.
constexpr Index kLikelihoodProbes = 10;

// psi - log|B|/2, by Lanczos quadrature where there is no factor, or why it is not known.
LikelihoodValue evidence_of(const FoundMode& found, std::uint64_t seed,
                            const ProgressCallback& progress) {
  LikelihoodValue out;
  out.method = "none";
  const double psi = found.mode.psi();
  if (found.mode.stop != StopReason::converged) {
    out.reason = "the mode was not found";
  } else {
    const auto det = found.system->log_determinant(
        {.probes = kLikelihoodProbes, .tolerance = 1e-3, .max_iterations = 300, .seed = seed},
        [&](const Iteration&) {
          return progress ? progress({"likelihood", -1, ""}) : Action::proceed;
        });
    if (det.estimate.stop == StopReason::interrupted)
      throw Interrupted("interrupted at the likelihood");
    out.reason = det.reason;
    if (det.exact) {
      out.known = true;
      out.method = "cholesky";
      out.value = out.low = out.high = psi - 0.5 * det.estimate.value;
    } else if (det.reason.empty()) {
      out = lanczos_likelihood(psi, det.estimate, kLikelihoodProbes);
    }
  }
  out.rows = found.mode.a.rows();
  return out;
}

LatentFunction function_of(const LaplaceMode& mode, const Observations& rows, Index c) {
  LatentFunction f;
  f.weights.w = mode.a.col(c);
  const Index q = mode.beta.rows();
  f.weights.basis_solves.resize(rows.size(), q);
  if (q > 0) {
    f.weights.basis_solves = mode.basis_solves.middleCols(c * q, q);
    f.weights.beta = mode.beta.col(c);
    f.weights.beta_covariance = mode.beta_covariance.middleCols(c * q, q);
  }
  f.curvature = mode.w.col(c);
  f.offset = rows.offset(c);
  return f;
}

}  // namespace

std::unique_ptr<LaplaceSystem> make_laplace_system(const Problem& problem, const Matrix& x,
                                                   const SystemChoice& choice) {
  if (choice.direct()) return std::make_unique<DenseLaplaceSystem>(problem.kernel, x);
  return std::make_unique<IterativeLaplaceSystem>(problem.kernel, x, choice);
}

FoundMode find_posterior_mode(const Problem& problem, const Observations& rows,
                              const SystemChoice& choice, LaplaceMode start,
                              const NewtonOptions& options, const ProgressCallback& progress) {
  FoundMode out;
  out.system = make_laplace_system(problem, rows.x, choice);
  out.mode =
      find_mode(problem, rows, *out.system, std::move(start), options, [&](const Iteration& it) {
        return progress
                   ? progress({"solve", -1,
                               fmt::format("Newton step {}, error {:.1e} (to fall below {:.1e})",
                                           it.number, it.value, it.target)})
                   : Action::proceed;
      });
  if (out.mode.stop == StopReason::interrupted)
    throw Interrupted("interrupted while the mode was being found");
  return out;
}

Posterior laplace_posterior(const Problem& problem, const Observations& rows,
                            const FoundMode& found, const PosteriorRequest& request,
                            std::uint64_t seed, const ProgressCallback& progress) {
  const auto& mode = found.mode;
  Posterior out;
  for (Index c = 0; c < rows.functions(); ++c) out.functions.push_back(function_of(mode, rows, c));
  out.certificate.residual = mode.residual;
  out.certificate.mean_error_bound =
      std::sqrt(problem.kernel.diagonal(rows.x).maxCoeff()) * mode.residual.maxCoeff();
  // A flat prior of the trend leaves its coefficients without a strongly convex loss.
  out.certificate.rigorous = problem.likelihood->log_concave() && problem.mean == MeanKind::zero;
  if (mode.missing.size() > 0) {
    double largest = 0;
    for (Index c = 0; c < rows.functions(); ++c)
      largest =
          std::max(largest, error_estimate(problem, rows.x, mode.a.col(c),
                                           {mode.missing.col(c), mode.missing_beta.col(c)}, seed));
    if (out.certificate.rigorous) largest = std::min(largest, out.certificate.mean_error_bound);
    out.certificate.mean_error_estimate = largest;
  }
  out.certificate.trend_defect = mode.trend_defect;
  out.certificate.trend_residual = mode.trend_residual;
  out.solve.stop = mode.stop;
  out.solve.iterations = mode.iterations;
  out.solve.matvecs = mode.matvecs;
  out.newton_steps = mode.steps;
  out.newton_decrement = mode.decrement;
  out.halvings = mode.halvings;
  out.preconditioner = found.system->preconditioner_report();
  if (request.with_evidence) out.evidence = evidence_of(found, seed, progress);
  return out;
}

}  // namespace mercer::inference
