#include "mercer/inference/log_determinant.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"

namespace mercer::inference {
namespace {

// Rounds whose movement is taken for the error that is left.
constexpr std::size_t kLastRounds = 2;

}  // namespace

double lanczos_log(const krylov::CgCoefficients& coefficients, std::size_t count) {
  const auto& [alpha, beta, complete] = coefficients;
  const auto n = static_cast<Index>(std::min(count, alpha.size()));
  if (n == 0) return 0;  // the start was the solution: P^-1 H z = z
  Vector diagonal(n), off(std::max<Index>(n - 1, 0));
  for (Index k = 0; k < n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    diagonal(k) = 1 / alpha[i] + (k > 0 ? beta[i] / alpha[i - 1] : 0.0);
    if (k > 0) off(k - 1) = std::sqrt(beta[i]) / alpha[i - 1];
  }
  Eigen::SelfAdjointEigenSolver<Matrix> eigen;
  eigen.computeFromTridiagonal(diagonal, off);
  double sum = 0;
  for (Index k = 0; k < n; ++k) {
    const double first = eigen.eigenvectors()(0, k);
    if (!(eigen.eigenvalues()(k) > 0)) return -std::numeric_limits<double>::infinity();
    sum += first * first * std::log(eigen.eigenvalues()(k));
  }
  return sum;
}

LogDeterminant log_determinant(const linalg::LinearOperator& h, const linalg::Preconditioner& p,
                               const LogDeterminantOptions& options, const Observer& observer) {
  validate(options);
  const Index n = h.size(), t = options.probes;
  Matrix z(n, t), x = Matrix::Zero(n, t);
  Rng rng(options.seed, "log determinant");
  p.sample(rng, z);
  krylov::SolverOptions solve;
  solve.tolerance = options.tolerance;
  solve.max_iterations = options.max_iterations;
  solve.keep_coefficients = true;
  // A refreshed residual would start a new Lanczos matrix in the middle of the old one.
  solve.residual_replacement_interval = options.max_iterations + 1;
  krylov::SolverContext context;
  context.preconditioner = &p;
  context.observer = observer;
  const auto solved = krylov::cg(h, z, x, solve, context);

  LogDeterminant out;
  out.iterations = solved.iterations;
  out.matvecs = solved.matvecs;
  out.stop = solved.stop;
  Vector quadratures(t);
  for (Index s = 0; s < t; ++s) {
    const auto& c = solved.coefficients[static_cast<std::size_t>(s)];
    const std::size_t count = c.alpha.size();
    quadratures(s) = static_cast<double>(n) * lanczos_log(c, count);
    out.positive = out.positive && std::isfinite(quadratures(s));
    const std::size_t before = count > kLastRounds ? count - kLastRounds : 1;
    const double moved = quadratures(s) - static_cast<double>(n) * lanczos_log(c, before);
    out.solver_error = std::max(out.solver_error, std::abs(moved));
  }
  const double mean = quadratures.mean();
  out.value = p.log_det() + mean;
  if (t > 1)
    out.probe_error = std::sqrt((quadratures.array() - mean).square().sum() /
                                static_cast<double>(t - 1) / static_cast<double>(t));
  return out;
}

}  // namespace mercer::inference
