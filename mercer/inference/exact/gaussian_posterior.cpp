#include "mercer/inference/exact/gaussian_posterior.hpp"

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/error_estimate.hpp"
#include "mercer/inference/exact/accurate_solve.hpp"
#include "mercer/inference/exact/likelihood_value.hpp"

namespace mercer::inference {
namespace {

Weights weights_of(const SolvedSystem& solved, ConstMatrixView basis) {
  try {
    return combine_solves(solved.solution, basis);
  } catch (const NotPositiveDefinite& error) {
    throw DataError(error.what());  // nearly dependent columns: the data's doing, not the noise's
  }
}

LikelihoodValue unknown_evidence(const std::string& reason) {
  LikelihoodValue out;
  out.method = "none";
  out.reason = reason;
  return out;
}

// A factor of H gives the value for nothing; the gradient takes more.
LikelihoodValue evidence_of(const Problem& problem, const Observations& rows,
                            const SolvedSystem& solved, const Weights& weights, std::uint64_t seed,
                            bool with_gradient, const ProgressCallback& progress) {
  if (solved.jitter > 0) return unknown_evidence("H is not positive definite to rounding");
  if (solved.log_det)
    return with_gradient ? evaluate_likelihood(problem, rows)
                         : factored_likelihood(problem, rows, weights, *solved.log_det);
  if (solved.report.stop == StopReason::converged)
    return estimate_likelihood(problem, rows, weights, seed, progress);
  return unknown_evidence("the solve did not converge");
}

// beta and w follow from the solves by a linear map, so a change of H^-1 y changes them by it.
WeightChange change_of(const Weights& weights, ConstMatrixView basis, const Vector& missing) {
  if (basis.cols() == 0) return {missing, {}};
  const Vector beta = weights.beta_covariance * (basis.transpose() * missing);
  return {missing - weights.basis_solves * beta, beta};
}

// Against H as it was asked for: what jitter changed is part of the error.
Certificate certificate_of(const Problem& problem, const Observations& rows, ConstMatrixView basis,
                           const SolvedSystem& solved, const Weights& weights,
                           const PosteriorRequest& request, std::uint64_t seed) {
  std::optional<double> energy;
  if (solved.whitened_residual.size() > 0) {
    Vector v = solved.whitened_residual.col(0);
    if (basis.cols() > 0) v -= solved.whitened_residual.rightCols(basis.cols()) * weights.beta;
    energy = solved.whitening_error * v.norm();
  }
  auto out = certify(problem, rows.noise.at(problem.noise()), weights, rows, energy);
  out.jitter = solved.jitter;
  const double estimate =
      error_estimate(problem, rows.x, weights.w, change_of(weights, basis, solved.missing), seed);
  out.mean_error_estimate = std::min(estimate, out.mean_error_bound);
  out.accuracy = request.accuracy;
  if (request.accuracy > 0 && out.mean_error_bound > request.accuracy * target_sd(rows))
    out.accuracy_missed =
        solved.missed.empty() ? "rounding of predictions allows no better" : solved.missed;
  return out;
}

}  // namespace

Posterior gaussian_posterior(const Problem& problem, const Observations& rows,
                             const SystemChoice& system, std::uint64_t seed,
                             const PosteriorRequest& request, const ProgressCallback& progress,
                             Matrix* solution) {
  const Matrix basis = problem.basis(rows.x);
  SystemChoice choice = system;
  choice.tolerance = request.tolerance;
  auto solved = solve_system(problem, rows, basis, choice, request.accuracy, progress,
                             solution != nullptr ? *solution : Matrix());
  Posterior out;
  LatentFunction f;
  f.weights = weights_of(solved, basis);
  f.noise = solved.noise;
  out.certificate = certificate_of(problem, rows, basis, solved, f.weights, request, seed);
  if (request.with_evidence)
    out.evidence =
        evidence_of(problem, rows, solved, f.weights, seed, request.with_gradient, progress);
  out.solve = std::move(solved.report);
  out.jitter = solved.jitter;
  out.preconditioner = std::move(solved.preconditioner);
  out.build_seconds = solved.build_seconds;
  if (solution != nullptr) *solution = std::move(solved.solution);
  out.functions.push_back(std::move(f));
  return out;
}

}  // namespace mercer::inference
