#include "mercer/inference/certificate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

// Error of one kernel evaluation and of the sum, in double, relative to sum_j |k_j w_j|: what
// tests/operators checks the tiles against.
constexpr double kProductRounding = 1e-14;
constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();

double row_quadratic(ConstMatrixView a, Index row, const Matrix& m) {
  return a.row(row).dot((m * a.row(row).transpose()).transpose());
}

}  // namespace

ErrorBound::ErrorBound(const kernels::Kernel& kernel, const Weights& weights, Residuals residuals,
                       ConstMatrixView x)
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

double ErrorBound::where_known(double prior_variance, double explained, double trend) const {
  return std::sqrt(std::clamp(explained, 0.0, prior_variance)) * residuals_.residual +
         std::sqrt(prior_variance) * rounding_ +
         std::sqrt(std::max(0.0, trend)) * (residuals_.residual + residuals_.trend_defect);
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

Matrix true_residual(const kernels::Kernel& kernel, const linalg::Diagonal& noise, const Matrix& x,
                     ConstMatrixView b, ConstMatrixView solution) {
  const operators::TiledOperator k(kernel, x, operators::Precision::float64);
  Matrix r(b.rows(), b.cols());
  k.apply(solution, r);
  r = b - r;
  noise.add_product(-1.0, solution, r);
  return r;
}

double factor_rounding(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                       const Matrix& x) {
  const double trace = kernel.diagonal(x).sum() + noise.trace(x.rows());
  // One g for the factor, two for the triangular solve.
  return (kProductRounding + 3 * linalg::cholesky_rounding(x.rows())) * trace / noise.least();
}

double residual_rounding(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                         const Matrix& x, ConstVectorView w) {
  const Vector prior = kernel.diagonal(x);
  const double spread = prior.cwiseQuotient(noise.vector(x.rows())).sum();
  return 2 * kUnitRoundoff * prior.cwiseSqrt().dot(w.cwiseAbs()) * std::sqrt(spread);
}

Certificate certify(const Problem& problem, const linalg::Diagonal& noise, const Weights& weights,
                    const Observations& data, std::optional<double> energy) {
  const Matrix& x = data.x;
  const ConstVectorView y = data.target();
  const Matrix basis = problem.basis(x);
  // Weights and solves of the trend share the kernel values of one product.
  Matrix solution(y.size(), 1 + basis.cols()), b(y.size(), 1 + basis.cols());
  solution << weights.w, weights.basis_solves;
  b << y, basis;
  Matrix residual = true_residual(problem.kernel, noise, x, b, solution);
  Vector r = residual.col(0);
  Certificate out;
  if (basis.cols() > 0) {
    r -= basis * weights.beta;
    const Vector defect = basis.transpose() * weights.w;
    out.trend_defect = std::sqrt(std::max(0.0, defect.dot(weights.beta_covariance * defect)));
    const Matrix whitened = noise.vector(y.size()).cwiseSqrt().cwiseInverse().asDiagonal() *
                            residual.rightCols(basis.cols());
    Matrix products(basis.cols(), basis.cols());
    linalg::gram(1.0, whitened, 0.0, products);
    const double squared = products.cwiseProduct(weights.beta_covariance).sum();
    out.trend_residual = std::sqrt(std::max(0.0, squared));
  }
  out.residual_norm = r.norm();
  const double weighted = std::sqrt(noise.inverse_squares(r)(0));
  out.residual = Vector::Constant(1, (energy ? std::min(weighted, *energy) : weighted) +
                                         residual_rounding(problem.kernel, noise, x, weights.w));
  out.relative_residual = y.norm() > 0 ? r.norm() / y.norm() : r.norm();
  const ErrorBound bound(problem.kernel, weights, {out.residual(0), out.trend_defect}, x);
  out.mean_error_bound = bound(problem.kernel.diagonal(x), basis).maxCoeff();
  return out;
}

}  // namespace mercer::inference
