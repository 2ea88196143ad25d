#include "mercer/inference/log_determinant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::inference {
namespace {

/// int_0^inf prod_i (theta_i / (theta_i + t))^2 / (lambda + t) dt by the trapezoidal rule in log t,
/// which converges exponentially: the integrand is analytic there, falls like t to the left and
/// faster than 1/t^2 to the right.
double error_integral(const Vector& theta, double lambda) {
  constexpr double step = 0.25, left = -37;  // e^-37: below rounding
  double sum = 0, largest = 0;
  for (double u = left;; u += step) {
    const double t = lambda * std::exp(u);
    const double term = std::exp(-2 * (t / theta.array()).log1p().sum()) * t / (lambda + t);
    sum += term;
    largest = std::max(largest, term);
    if (u > 0 && term <= 1e-16 * largest) return step * sum;
  }
}

/// The Lanczos matrix that `count` iterations of conjugate gradients make.
Matrix lanczos_matrix(const krylov::CgCoefficients& coefficients, std::size_t count) {
  const auto& alpha = coefficients.alpha;
  const auto& beta = coefficients.beta;
  const auto n = static_cast<Index>(count);
  Matrix t = Matrix::Zero(n, n);
  for (Index k = 0; k < n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    t(k, k) = 1 / alpha[i] + (k > 0 ? beta[i] / alpha[i - 1] : 0.0);
    if (k > 0) t(k, k - 1) = t(k - 1, k) = std::sqrt(beta[i]) / alpha[i - 1];
  }
  return t;
}

}  // namespace

LanczosLog lanczos_log(const krylov::CgCoefficients& coefficients, double last_energy,
                       std::optional<double> lambda) {
  const std::size_t count = coefficients.lanczos_steps();
  if (count == 0) return {};  // the start was the solution: P^-1 H z = z
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Matrix t = lanczos_matrix(coefficients, count);
  if (!t.allFinite()) return {-infinity, infinity};
  // By LAPACK: after more iterations than there are eigenvalues, when T has nearly equal
  // eigenvalues and small entries beside its diagonal, Eigen 3.4's computeFromTridiagonal has
  // returned vectors whose quadrature was off by 3e-3.
  const auto [theta, vectors] = linalg::symmetric_eigen(t);
  if (!(theta.minCoeff() > 0)) return {-infinity, infinity};
  const auto& energy = coefficients.energy;
  const double after = count < energy.size() ? energy[count] : last_energy;
  return {(vectors.row(0).transpose().array().square() * theta.array().log()).sum(),
          std::max(after, 0.0) / energy[0] *
              error_integral(theta, lambda.value_or(0.5 * theta.minCoeff()))};
}

LogDeterminant log_determinant(const linalg::LinearOperator& h, const linalg::Preconditioner& p,
                               const LogDeterminantOptions& options, const Observer& observer) {
  validate(options);
  const linalg::RowSpace space = h.row_space();
  const Index t = options.probes;
  const auto n = static_cast<double>(space.global_size());
  Matrix z(h.size(), t), x = Matrix::Zero(h.size(), t);
  Rng rng(options.seed, "log determinant");
  p.sample(rng, z);
  krylov::SolverOptions solve;
  solve.tolerance = options.tolerance;
  solve.max_iterations = options.max_iterations;
  solve.keep_coefficients = true;
  // A refreshed residual would start a new Lanczos matrix in the middle of the old one.
  solve.residual_replacement_interval = options.max_iterations + 1;
  Matrix r;
  krylov::SolverContext context;
  context.preconditioner = &p;
  context.observer = observer;
  context.residual = &r;
  const auto solved = krylov::cg(h, z, x, solve, context);

  LogDeterminant out;
  out.iterations = solved.iterations;
  out.matvecs = solved.matvecs;
  out.stop = solved.stop;
  Vector quadratures(t);
  p.solve(r, z);
  Vector last_energies(t);
  for (Index s = 0; s < t; ++s) last_energies(s) = r.col(s).dot(z.col(s));
  space.reduce({last_energies.data(), static_cast<std::size_t>(t)});
  for (Index s = 0; s < t; ++s) {
    const auto& c = solved.coefficients[static_cast<std::size_t>(s)];
    const auto [value, error] = lanczos_log(c, last_energies(s));
    quadratures(s) = n * value;
    out.positive = out.positive && std::isfinite(value);
    out.solver_error = std::max(out.solver_error, n * error);
  }
  const double mean = quadratures.mean();
  out.value = p.log_det() + mean;
  if (t > 1)
    out.probe_error = std::sqrt((quadratures.array() - mean).square().sum() /
                                static_cast<double>(t - 1) / static_cast<double>(t));
  return out;
}

}  // namespace mercer::inference
