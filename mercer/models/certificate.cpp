#include "mercer/models/certificate.hpp"

#include <cmath>

#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Error of one kernel evaluation and of the sum, in double, relative to sum_j |k_j w_j|: what
// tests/operators checks the tiles against.
constexpr double kProductRounding = 1e-14;

double row_quadratic(ConstMatrixView a, Index row, const Matrix& m) {
  return a.row(row).dot((m * a.row(row).transpose()).transpose());
}

}  // namespace

ErrorBound::ErrorBound(const inference::RegressionProblem& problem, double noise,
                       const inference::Weights& weights, const Certificate& certificate,
                       ConstMatrixView x)
    : residual_(certificate.residual_norm / std::sqrt(noise)),
      trend_defect_(certificate.trend_defect),
      rounding_(kProductRounding *
                problem.kernel.diagonal(x).cwiseSqrt().dot(weights.w.cwiseAbs())),
      beta_covariance_(weights.beta_covariance) {}

Vector ErrorBound::operator()(ConstVectorView prior_variance, ConstMatrixView basis) const {
  Vector bound(prior_variance.size());
  for (Index i = 0; i < bound.size(); ++i) {
    const double prior_sd = std::sqrt(prior_variance(i));
    bound(i) = prior_sd * (residual_ + rounding_);
    if (basis.cols() > 0) {
      const double trend_sd = std::sqrt(std::max(0.0, row_quadratic(basis, i, beta_covariance_)));
      bound(i) += (trend_sd + prior_sd) * (residual_ + trend_defect_);
    }
  }
  return bound;
}

Certificate certify(const inference::RegressionProblem& problem, double noise,
                    const inference::Weights& weights, ConstMatrixView x, ConstVectorView y,
                    double target_sd) {
  const Matrix basis = inference::mean_basis(problem.mean, x);
  const operators::TiledOperator k(problem.kernel, x, operators::Precision::float64);
  Vector r(y.size());
  k.apply(weights.w, r);
  r = y - r - noise * weights.w;
  Certificate out;
  if (basis.cols() > 0) {
    r -= basis * weights.beta;
    const Vector defect = basis.transpose() * weights.w;
    out.trend_defect = std::sqrt(std::max(0.0, defect.dot(weights.beta_covariance * defect)));
  }
  out.residual_norm = r.norm();
  out.relative_residual = y.norm() > 0 ? r.norm() / y.norm() : r.norm();
  const ErrorBound bound(problem, noise, weights, out, x);
  out.mean_error_bound = target_sd * bound(problem.kernel.diagonal(x), basis).maxCoeff();
  return out;
}

}  // namespace mercer::models
