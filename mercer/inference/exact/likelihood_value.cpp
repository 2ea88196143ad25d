#include "mercer/inference/exact/likelihood_value.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/inference/speeds.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::inference {
namespace {

// Estimating a likelihood may take so many seconds, by its usual number of rounds.
constexpr double kLongestLikelihood = 300, kUsualRounds = 20;
constexpr double kUpper95 = 0.975;
// Tolerances of the solves: the second where the first leaves more than this share of the spread of
// the probes, which alone is the width of the interval otherwise. The error of the quadrature is of
// second order in the residual.
constexpr double kLooseLanczos = 1e-2, kTightLanczos = 1e-3, kShareOfSpread = 0.1;
// Noise below this share of the variance, times sqrt(N), is too small for float32 products.
constexpr double kFloat32Noise = 1e-6;

LikelihoodValue unknown(std::string reason) {
  LikelihoodValue out;
  out.method = "none";
  out.reason = std::move(reason);
  return out;
}

bool takes_too_long(const Problem& problem, const Observations& data, Index probes) {
  const double product =
      product_seconds(nominal_speeds(problem.kernel, data.x.cols()), data.size(),
                      operators::default_operator().name, SolvePrecision::mixed, probes);
  return kUsualRounds * product > kLongestLikelihood;
}

// The determinant of float32 products is that of another matrix where the noise is small.
SolvePrecision precision_for(const Problem& problem, const Observations& data,
                             const linalg::Diagonal& noise) {
  const double prior = problem.kernel.diagonal(data.x).maxCoeff();
  const double rounding = kFloat32Noise * prior * std::sqrt(static_cast<double>(data.size()));
  return noise.least() > rounding ? SolvePrecision::mixed : SolvePrecision::float64;
}

// log|H|, preconditioned by neighbours.
LogDeterminant log_determinant(const Operators& k, const linalg::Diagonal& noise,
                               const LogDeterminantOptions& options,
                               const ProgressCallback& progress) {
  preconditioners::PreconditionerOptions sparse;
  sparse.seed = options.seed;
  const auto p = preconditioners::make(preconditioners::vecchia_info(), {*k.exact, noise}, sparse);
  const linalg::ShiftedOperator h(k.fast ? *k.fast : *k.exact, noise);
  auto out = log_determinant(h, *p.preconditioner, options, [&](const Iteration& it) {
    return progress ? progress({"likelihood", -1, fmt::format("round {}", it.number)})
                    : Action::proceed;
  });
  if (out.stop == StopReason::interrupted)
    throw Interrupted("interrupted while estimating the likelihood");
  return out;
}

struct Quadratic {
  double value = 0;     // z'w + w'r
  double unsolved = 0;  // at least r'H^-1 r
};

// z'H^-1 z = z'w + w'r + r'H^-1 r for z = y - A beta and r = z - H w.
Quadratic quadratic_term(const Problem& problem, const Observations& data, const Weights& weights,
                         const linalg::LinearOperator& k, const linalg::Diagonal& noise) {
  const Matrix basis = problem.basis(data.x);
  const Vector z = basis.cols() > 0 ? Vector(data.y - basis * weights.beta) : Vector(data.y);
  Matrix r(data.size(), 1);
  k.apply(weights.w, r);
  r = z - r;
  noise.add_product(-1, weights.w, r);
  return {z.dot(weights.w) + weights.w.dot(r.col(0)), noise.inverse_squares(r)(0)};
}

}  // namespace

LikelihoodValue lanczos_likelihood(double rest, const LogDeterminant& log_det, Index probes,
                                   double unsolved) {
  LikelihoodValue out;
  out.known = true;
  out.method = "lanczos";
  out.value = rest - 0.5 * log_det.value;
  out.probe_error = 0.5 * log_det.probe_error;
  out.solver_error = 0.5 * (log_det.solver_error + unsolved);
  const boost::math::students_t spread(static_cast<double>(probes - 1));
  const double width = boost::math::quantile(spread, kUpper95) * out.probe_error + out.solver_error;
  out.low = out.value - width;
  out.high = out.value + width;
  return out;
}

LikelihoodValue factored_likelihood(const Problem& problem, const Observations& data,
                                    const Weights& weights, double log_det) {
  const Matrix basis = problem.basis(data.x);
  const Vector z = basis.cols() > 0 ? Vector(data.y - basis * weights.beta) : Vector(data.y);
  LikelihoodValue out;
  out.known = true;
  out.value = out.low = out.high =
      -0.5 * (z.dot(weights.w) + log_det +
              static_cast<double>(data.size()) * std::log(2 * std::numbers::pi)) +
      data.replicates.log_likelihood(problem.noise());
  out.method = "cholesky";
  out.rows = data.rows_before_merging();
  return out;
}

LikelihoodValue evaluate_likelihood(const Problem& problem, const Observations& data) {
  LikelihoodValue out;
  out.method = "none";
  Evidence evidence;
  try {
    evidence = exact_evidence(problem, data, true);
  } catch (const NotPositiveDefinite&) {
    // The solve adds jitter and says so; the likelihood of H itself has no value.
    out.reason = "H is not positive definite to rounding";
    return out;
  }
  out.known = true;
  out.value = out.low = out.high = evidence.value;
  out.method = "cholesky";
  out.rows = data.rows_before_merging();
  out.gradient = evidence.gradient;
  return out;
}

LikelihoodValue estimate_likelihood(const Problem& problem, const Observations& data,
                                    const Weights& weights, std::uint64_t seed,
                                    const ProgressCallback& progress) {
  LogDeterminantOptions options;
  options.seed = seed;
  if (takes_too_long(problem, data, options.probes))
    return unknown("on so many rows it would take too long");
  const linalg::Diagonal noise = data.noise.at(problem.noise());
  const auto k = make_operators(problem.kernel, data.x, operators::default_operator().name,
                                precision_for(problem, data, noise));
  options.tolerance = kLooseLanczos;
  auto log_det = log_determinant(k, noise, options, progress);
  if (log_det.stop == StopReason::converged &&
      log_det.solver_error > kShareOfSpread * log_det.probe_error) {
    options.tolerance = kTightLanczos;
    log_det = log_determinant(k, noise, options, progress);
  }
  if (log_det.stop != StopReason::converged || !log_det.positive)
    return unknown("the solves that log|H| is estimated from did not converge");
  const auto fit = quadratic_term(problem, data, weights, *k.exact, noise);
  const double rest = -0.5 * fit.value -
                      0.5 * static_cast<double>(data.size()) * std::log(2 * std::numbers::pi) +
                      data.replicates.log_likelihood(problem.noise());
  auto out = lanczos_likelihood(rest, log_det, options.probes, fit.unsolved);
  out.rows = data.rows_before_merging();
  return out;
}

}  // namespace mercer::inference
