// What the gradients of an evidence need at the mode: slopes of the likelihood, and the part of a
// mean. Cost O(N) an entry; the solves are those of the mode.
#include "mercer/inference/laplace/laplace.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"

namespace mercer::inference {

TrendPart::TrendPart(const Problem& problem, const Observations& data, const LaplaceMode& mode)
    : mode_(mode),
      basis_(problem.basis(data.x)),
      t_(Matrix::Zero(basis_.cols(), data.functions())) {}

void TrendPart::project(Index j, VectorView s) {
  const Index q = basis_.cols();
  if (q == 0) return;
  t_.col(j) = mode_.beta_covariance.middleCols(j * q, q) * (basis_.transpose() * s);
  s -= mode_.basis_solves.middleCols(j * q, q) * t_.col(j);
}

void TrendPart::add_to(Index j, VectorView ks) const {
  if (basis_.cols() > 0) ks += basis_ * t_.col(j);
}

ModeSlopes mode_slopes(const Problem& problem, const Observations& data, const LaplaceMode& mode) {
  const Index n = data.size(), c = data.functions();
  if (problem.likelihood->coupled() != nullptr)
    return {likelihood_at(*problem.likelihood, data, mode.f).g, Matrix(), true};
  ModeSlopes out{Matrix(n, c), Matrix(n, c)};
  for (Index j = 0; j < c; ++j)
    for (Index i = 0; i < n; ++i) {
      out.gradient(i, j) =
          data.weight_of(i) * problem.likelihood->log_density(data.y(i, j), mode.f(i, j)).first;
      const auto curvature = problem.likelihood->curvature(data.y(i, j), mode.f(i, j));
      out.curvature_ratio(i, j) = curvature.value > 0 ? curvature.slope / curvature.value : 0.0;
      out.implicit = out.implicit || curvature.slope != 0;
    }
  return out;
}

Matrix coupled_slopes(const Problem& problem, const LaplaceMode& mode, const FillBlock& fill) {
  const Index n = mode.f.rows(), c = mode.f.cols();
  Matrix out(n, c), e(c, c);
  Vector slope(c);
  for (Index i = 0; i < n; ++i) {
    const Vector f = mode.f.row(i);
    fill(i, e);
    problem.likelihood->coupled()->curvature_slope(f, e, slope);
    out.row(i) = -0.5 * slope;
  }
  return out;
}

Vector likelihood_gradient(const Problem& problem, const Observations& data,
                           const LaplaceMode& mode, ConstMatrixView sigma_w, ConstMatrixView ks) {
  const Index count = problem.likelihood->log_parameters().size();
  Vector out = Vector::Zero(count);
  std::vector<likelihoods::ParameterSlope> slopes(static_cast<std::size_t>(count));
  if (count == 0) return out;
  for (Index j = 0; j < data.functions(); ++j)
    for (Index i = 0; i < data.size(); ++i) {
      problem.likelihood->parameter_slopes(data.y(i, j), mode.f(i, j), slopes);
      const double sigma = mode.w(i, j) > 0 ? sigma_w(i, j) / mode.w(i, j) : 0.0;
      for (Index p = 0; p < count; ++p) {
        const auto& slope = slopes[static_cast<std::size_t>(p)];
        out(p) += data.weight_of(i) *
                  (slope.value - 0.5 * sigma * slope.curvature + ks(i, j) * slope.first);
      }
    }
  return out;
}

}  // namespace mercer::inference
