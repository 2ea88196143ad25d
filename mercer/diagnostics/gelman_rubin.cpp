#include "mercer/diagnostics/gelman_rubin.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/diagnostics/not_a_number.hpp"

namespace mercer::diagnostics {
namespace {

// log of positive draws, logit of those between 0 and 1, others as they are.
Matrix transformed(ConstMatrixView draws) {
  if (!(draws.minCoeff() > 0)) return draws;
  if (draws.maxCoeff() < 1) return (draws.array() / (1 - draws.array())).log();
  return draws.array().log();
}

// About the mean, found from the differences to the first: exactly zero when all are equal.
Vector centred(const Vector& a) {
  const Vector shifted = a.array() - a(0);
  return shifted.array() - shifted.mean();
}

double covariance(const Vector& a, const Vector& b) {
  return centred(a).dot(centred(b)) / static_cast<double>(a.size() - 1);
}

// The quantile of Fisher's F; with infinitely many degrees of freedom below that of chi-square.
double f_quantile(double p, double above, double below) {
  if (std::isnan(below)) return kNotANumber;
  if (!std::isfinite(below))
    return boost::math::quantile(boost::math::chi_squared(above), p) / above;
  return boost::math::quantile(boost::math::fisher_f(above, below), p);
}

bool enough(Index iterations, Index chains) { return iterations >= 2 && chains >= 2; }

}  // namespace

std::optional<GelmanRubin> gelman_rubin(ConstMatrixView draws, const GelmanRubinOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1))
    throw InvalidArgument("gelman_rubin: `confidence` must be between 0 and 1");
  if (!enough(draws.rows(), draws.cols())) return {};
  if (!draws.allFinite()) return GelmanRubin{kNotANumber, kNotANumber};
  const Matrix x = options.transform ? transformed(draws) : Matrix(draws);
  const auto n = static_cast<double>(x.rows()), m = static_cast<double>(x.cols());
  Vector means(x.cols()), variances(x.cols());
  for (Index j = 0; j < x.cols(); ++j) {
    const double first = x(0, j);
    means(j) = first + (x.col(j).array() - first).mean();
    variances(j) = covariance(x.col(j), x.col(j));
  }
  // Within and between chains, with the sampling variances of both estimates.
  const double w = variances.mean(), b = n * covariance(means, means);
  const double var_w = covariance(variances, variances) / m, var_b = 2 * b * b / (m - 1);
  const double cov_wb =
      n / m *
      (covariance(variances, means.cwiseAbs2()) - 2 * means.mean() * covariance(variances, means));
  const double v = (n - 1) * w / n + (1 + 1 / m) * b / n;
  const double var_v = ((n - 1) * (n - 1) * var_w + (1 + 1 / m) * (1 + 1 / m) * var_b +
                        2 * (n - 1) * (1 + 1 / m) * cov_wb) /
                       (n * n);
  const double df = 2 * v * v / var_v, adjustment = (df + 3) / (df + 1);
  const double fixed = (n - 1) / n, random = (1 + 1 / m) / n * (b / w);
  const double quantile = f_quantile((1 + options.confidence) / 2, m - 1, 2 * w * w / var_w);
  return GelmanRubin{std::sqrt(adjustment * (fixed + random)),
                     std::sqrt(adjustment * (fixed + quantile * random))};
}

std::optional<double> multivariate_gelman_rubin(const std::vector<Matrix>& parameters,
                                                bool transform) {
  if (parameters.size() < 2) return {};
  const Index rows = parameters.front().rows(), chains = parameters.front().cols();
  const auto p = static_cast<Index>(parameters.size());
  for (const Matrix& each : parameters)
    if (each.rows() != rows || each.cols() != chains)
      throw DimensionMismatch("gelman_rubin: draws of a parameter", each.size(), "of another",
                              rows * chains);
  if (!enough(rows, chains)) return {};
  std::vector<Matrix> x;
  for (const Matrix& each : parameters) {
    if (!each.allFinite()) return {};
    x.push_back(transform ? transformed(each) : each);
  }
  const auto n = static_cast<double>(rows);
  Matrix within = Matrix::Zero(p, p), means(chains, p), one(rows, p);
  for (Index chain = 0; chain < chains; ++chain) {
    for (Index k = 0; k < p; ++k) one.col(k) = x[static_cast<std::size_t>(k)].col(chain);
    means.row(chain) = one.colwise().mean();
    one.rowwise() -= means.row(chain);
    within += one.transpose() * one / (n - 1) / static_cast<double>(chains);
  }
  means.rowwise() -= means.colwise().mean().eval();
  const Matrix between = n * means.transpose() * means / static_cast<double>(chains - 1);
  const Eigen::LLT<Matrix> factor(within);
  if (factor.info() != Eigen::Success) return {};
  Matrix ratio = factor.matrixL().solve(between);
  ratio = factor.matrixL().solve(ratio.transpose()).eval();
  const double largest =
      Eigen::SelfAdjointEigenSolver<Matrix>(ratio, Eigen::EigenvaluesOnly).eigenvalues()(p - 1);
  return std::sqrt(1 - 1 / n + (1 + 1 / static_cast<double>(p)) * largest / n);
}

}  // namespace mercer::diagnostics
