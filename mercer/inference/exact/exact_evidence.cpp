#include "mercer/inference/exact/exact_evidence.hpp"

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {

Trend solve_trend(Matrix g, ConstVectorView b) {
  // The units of the inputs say nothing about their being collinear.
  const Vector scale = g.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  g = scale.asDiagonal() * g * scale.asDiagonal();
  const Eigen::LLT<Matrix> factor(g);
  constexpr double kCollinear = 1e-13;  // a reciprocal condition number that is rounding only
  if (factor.info() != Eigen::Success || factor.rcond() < kCollinear)
    throw NotPositiveDefinite(
        "the columns of the mean (constant or linear trend) are linearly dependent on these data; "
        "use `mean=zero` or drop collinear inputs",
        0);
  return {scale.asDiagonal() * factor.solve(scale.asDiagonal() * b),
          scale.asDiagonal() * factor.solve(Matrix(scale.asDiagonal()))};
}

Weights combine_solves(ConstMatrixView solves, ConstMatrixView basis) {
  Weights out;
  const Index q = basis.cols();
  out.basis_solves = solves.rightCols(q);
  if (q == 0) {
    out.w = solves.col(0);
    return out;
  }
  // G = A' H^-1 A, symmetrised: the solves are only approximately symmetric.
  Matrix g = basis.transpose() * out.basis_solves;
  g = 0.5 * (g + g.transpose()).eval();
  auto trend = solve_trend(std::move(g), basis.transpose() * solves.col(0));
  out.beta_covariance = std::move(trend.covariance);
  out.beta = std::move(trend.beta);
  out.w = solves.col(0) - out.basis_solves * out.beta;
  return out;
}

Evidence exact_evidence(const Problem& problem, const Observations& data, bool with_gradient) {
  const Matrix& x = data.x;
  const Index n = data.size();
  if (data.y.size() != n)
    throw DimensionMismatch("evidence: length of y", data.y.size(), "number of points", n);
  const ConstVectorView y = data.target();
  const linalg::Diagonal d = data.noise.at(problem.noise());
  d.require_size(n, "evidence");
  Matrix h(n, n);
  operators::lower_matrix(problem.kernel, x, h);
  h.diagonal() += d.vector(n);
  linalg::Cholesky factor(std::move(h));

  const Matrix basis = problem.basis(x);
  Matrix solves(n, 1 + basis.cols());
  solves << y, basis;
  factor.solve_in_place(solves);
  const Weights weights = combine_solves(solves, basis);
  const Vector residual = basis.cols() > 0 ? Vector(y - basis * weights.beta) : Vector(y);

  Evidence out;
  out.value = -0.5 * residual.dot(weights.w) - 0.5 * factor.log_det() -
              0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi) +
              data.replicates.log_likelihood(problem.noise());
  if (!with_gradient) return out;

  // dL/dtheta_p = 1/2 sum_ij (w w' - H^-1)_ij dH_ij/dtheta_p
  const Matrix inverse = std::move(factor).lower_inverse();
  out.gradient.resize(problem.kernel.num_parameters() + 1);
  operators::weighted_gradient(problem.kernel, x, weights.w, inverse,
                               out.gradient.head(problem.kernel.num_parameters()));
  const linalg::Diagonal slope = data.noise.slope(problem.noise());
  double& by_noise = out.gradient(out.gradient.size() - 1);
  const Vector of_row = weights.w.cwiseAbs2() - inverse.diagonal();
  by_noise = slope.uniform() ? slope(0) * of_row.sum() : of_row.dot(slope.vector(n));
  out.gradient *= 0.5;
  by_noise += data.replicates.slope(problem.noise());
  return out;
}

double exact_evidence_bytes(Index n) { return linalg::cholesky_bytes(n); }

double exact_evidence_flops(Index n, bool with_gradient) {
  return linalg::cholesky_flops(n) * (with_gradient ? 3.0 : 1.0);
}

}  // namespace mercer::inference
