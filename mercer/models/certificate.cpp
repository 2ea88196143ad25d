#include "mercer/models/certificate.hpp"

#include <cmath>
#include <limits>

#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Error of one kernel evaluation and of the sum, in double, relative to sum_j |k_j w_j|: what
// tests/operators checks the tiles against.
constexpr double kProductRounding = 1e-14;
constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();

double row_quadratic(ConstMatrixView a, Index row, const Matrix& m) {
  return a.row(row).dot((m * a.row(row).transpose()).transpose());
}

}  // namespace

ErrorBound::ErrorBound(const kernels::Kernel& kernel, const inference::Weights& weights,
                       Residuals residuals, ConstMatrixView x)
    : residuals_(residuals),
      rounding_(kProductRounding * kernel.diagonal(x).cwiseSqrt().dot(weights.w.cwiseAbs())),
      beta_covariance_(weights.beta_covariance) {}

Vector ErrorBound::operator()(ConstVectorView prior_variance, ConstMatrixView basis) const {
  Vector bound(prior_variance.size());
  for (Index i = 0; i < bound.size(); ++i) {
    const double prior_sd = std::sqrt(prior_variance(i));
    bound(i) = prior_sd * (residuals_.residual + rounding_);
    if (basis.cols() > 0) {
      const double trend_sd = std::sqrt(std::max(0.0, row_quadratic(basis, i, beta_covariance_)));
      bound(i) += (trend_sd + prior_sd) * (residuals_.residual + residuals_.trend_defect);
    }
  }
  return bound;
}

VarianceRounding::VarianceRounding(const kernels::Kernel& kernel, linalg::Diagonal noise,
                                   ConstMatrixView x)
    : noise_(std::move(noise)), size_(x.rows()), prior_sd_(kernel.diagonal(x).cwiseSqrt()) {
  trace_ = prior_sd_.squaredNorm();
}

Vector VarianceRounding::direct(ConstVectorView prior_variance, ConstVectorView explained) const {
  const auto n = static_cast<double>(size_);
  const double trace = trace_ + noise_.trace(size_);
  const double least_noise = noise_.least();
  const double factor = linalg::cholesky_rounding(size_);
  Vector bound(explained.size());
  for (Index i = 0; i < bound.size(); ++i) {
    const double u = std::sqrt(explained(i) / least_noise);
    bound(i) = (kProductRounding + 3 * factor) * trace * u * u +
               2 * kProductRounding * std::sqrt(prior_variance(i) * trace_) * u +
               n * kUnitRoundoff * explained(i) + kProductRounding * prior_variance(i);
  }
  return bound;
}

Vector VarianceRounding::iterative(ConstVectorView prior_variance, ConstMatrixView u) const {
  Vector bound(u.cols());
  const Vector noise = noise_.vector(size_);
  for (Index i = 0; i < bound.size(); ++i) {
    // sum_j sqrt(k_jj) |u_j|: k*'u and u'r are sums of such terms, r one of products with K.
    const double sum = prior_sd_.dot(u.col(i).cwiseAbs());
    bound(i) = kProductRounding * (sum * sum + noise.dot(u.col(i).cwiseAbs2()) +
                                   3 * std::sqrt(prior_variance(i)) * sum + prior_variance(i));
  }
  return bound;
}

double trend_variance_error(double trend_variance, double prior_variance, double residual) {
  return residual *
         (trend_variance + 2 * std::sqrt(trend_variance * (1 + residual) * prior_variance) +
          residual * prior_variance);
}

Certificate certify(const inference::Problem& problem, const linalg::Diagonal& noise,
                    const inference::Weights& weights, const inference::Observations& data,
                    double target_sd) {
  const Matrix& x = data.x;
  const ConstVectorView y = data.target();
  const Matrix basis = problem.basis(x);
  const operators::TiledOperator k(problem.kernel, x, operators::Precision::float64);
  Vector r(y.size());
  k.apply(weights.w, r);
  r = y - r;
  noise.add_product(-1.0, weights.w, r);
  Certificate out;
  if (basis.cols() > 0) {
    r -= basis * weights.beta;
    const Vector defect = basis.transpose() * weights.w;
    out.trend_defect = std::sqrt(std::max(0.0, defect.dot(weights.beta_covariance * defect)));
    Matrix residual(basis.rows(), basis.cols());
    k.apply(weights.basis_solves, residual);
    residual = basis - residual;
    noise.add_product(-1.0, weights.basis_solves, residual);
    residual = noise.vector(y.size()).cwiseSqrt().cwiseInverse().asDiagonal() * residual;
    Matrix products(basis.cols(), basis.cols());
    linalg::gram(1.0, residual, 0.0, products);
    const double squared = products.cwiseProduct(weights.beta_covariance).sum();
    out.trend_residual = std::sqrt(std::max(0.0, squared));
  }
  out.residual_norm = r.norm();
  out.residual = Vector::Constant(1, std::sqrt(noise.inverse_squares(r)(0)));
  out.relative_residual = y.norm() > 0 ? r.norm() / y.norm() : r.norm();
  const ErrorBound bound(problem.kernel, weights, {out.residual(0), out.trend_defect}, x);
  out.mean_error_bound = target_sd * bound(problem.kernel.diagonal(x), basis).maxCoeff();
  return out;
}

}  // namespace mercer::models
