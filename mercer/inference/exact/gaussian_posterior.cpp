#include "mercer/inference/exact/gaussian_posterior.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/exact/likelihood_value.hpp"

namespace mercer::inference {
namespace {

// Says how far a solve is: residuals fall roughly geometrically, so progress is counted in digits.
Observer solve_observer(const ProgressCallback& progress) {
  if (!progress) return {};
  return [progress, first = 0.0](const Iteration& it) mutable {
    if (first <= 0) first = std::max(it.value, it.target);
    double fraction = -1;
    if (it.target > 0 && it.value > 0 && first > it.target)
      fraction = std::clamp(std::log(first / it.value) / std::log(first / it.target), 0.0, 1.0);
    return progress({"solve", fraction,
                     fmt::format("iteration {}, relative residual {:.1e}", it.number, it.value)});
  };
}

// The trend's columns are solved to this tolerance whatever the one for y: their error would
// enter the variances, whose bound does not count it.
constexpr double kBasisTolerance = 1e-10;

}  // namespace

SolvedSystem solve_system(const Problem& problem, const Observations& data, ConstMatrixView basis,
                          const SystemChoice& choice, const ProgressCallback& progress) {
  if (progress && progress({"solve", -1, "building " + choice.solver}) == Action::stop)
    throw Interrupted("interrupted before the solve");
  const RegularizedSystem system(problem.kernel, data.noise.at(problem.noise()), data.x, choice);
  SolvedSystem out;
  out.solution = Matrix::Zero(data.size(), 1 + basis.cols());
  const auto solve_columns = [&](ConstMatrixView b, MatrixView solution, double tolerance) {
    auto report = system.solve(b, solution, tolerance, solve_observer(progress));
    if (report.stop == StopReason::interrupted)
      throw Interrupted(
          fmt::format("interrupted after {} iterations of the solve", report.iterations));
    return report;
  };
  out.report = solve_columns(data.y, out.solution.leftCols(1), choice.tolerance);
  if (basis.cols() > 0) {
    const auto trend = solve_columns(basis, out.solution.rightCols(basis.cols()),
                                     std::min(choice.tolerance, kBasisTolerance));
    // 1e-10 may be out of reach; what the user asked for may not be.
    if (trend.relative_residual > choice.tolerance) out.report.stop = trend.stop;
    out.report.matvecs += trend.matvecs;
    out.report.seconds += trend.seconds;
  }
  out.noise = system.noise();
  out.jitter = system.jitter();
  if (const auto* factor = system.factor()) out.log_det = factor->log_det();
  out.build_seconds = system.build_seconds();
  out.preconditioner = system.preconditioner_report();
  return out;
}

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

}  // namespace

Posterior gaussian_posterior(const Problem& problem, const Observations& rows,
                             const SystemChoice& system, std::uint64_t seed,
                             const PosteriorRequest& request, const ProgressCallback& progress) {
  const Matrix basis = problem.basis(rows.x);
  SystemChoice choice = system;
  choice.tolerance = request.tolerance;
  auto solved = solve_system(problem, rows, basis, choice, progress);
  Posterior out;
  LatentFunction f;
  f.weights = weights_of(solved, basis);
  f.noise = solved.noise;
  // Against H as it was asked for: what jitter changed is part of the error.
  out.certificate = certify(problem, rows.noise.at(problem.noise()), f.weights, rows);
  out.certificate.jitter = solved.jitter;
  if (request.with_evidence)
    out.evidence =
        evidence_of(problem, rows, solved, f.weights, seed, request.with_gradient, progress);
  out.solve = std::move(solved.report);
  out.jitter = solved.jitter;
  out.preconditioner = std::move(solved.preconditioner);
  out.build_seconds = solved.build_seconds;
  out.functions.push_back(std::move(f));
  return out;
}

}  // namespace mercer::inference
