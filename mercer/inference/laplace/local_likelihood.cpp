#include "mercer/inference/laplace/local_likelihood.hpp"

namespace mercer::inference {
namespace {

// A coupled likelihood, row by row: log density, gradient and the weights of its curvature.
LocalLikelihood evaluate_rows(const likelihoods::CoupledLikelihood& likelihood,
                              const Observations& data, const Matrix& f) {
  const Index n = f.rows(), c = f.cols();
  LocalLikelihood out{Vector::Zero(1), Matrix(n, c), Matrix(n, c), Matrix()};
  Vector g(c), w(c);
  for (Index i = 0; i < n; ++i) {
    const Vector y = data.y.row(i), row = f.row(i);
    const double weight = data.weight_of(i);
    out.log_density(0) += weight * likelihood.row_derivatives(y, row, g, w);
    out.g.row(i) = weight * g;
    out.w.row(i) = weight * w;
  }
  out.step_w = out.w;
  return out;
}

}  // namespace

LocalLikelihood likelihood_at(const likelihoods::Likelihood& likelihood, const Observations& data,
                              const Matrix& f) {
  const Index n = f.rows(), c = f.cols();
  if (const auto* coupled = likelihood.coupled()) return evaluate_rows(*coupled, data, f);
  LocalLikelihood out{Vector::Zero(c), Matrix(n, c), Matrix(n, c), Matrix(n, c)};
  for (Index j = 0; j < c; ++j)
    for (Index i = 0; i < n; ++i) {
      const auto p = likelihood.log_density(data.y(i, j), f(i, j));
      const double weight = data.weight_of(i);
      out.log_density(j) += weight * p.value;
      out.g(i, j) = weight * p.first;
      out.w(i, j) = weight * likelihood.curvature(data.y(i, j), f(i, j)).value;
      out.step_w(i, j) = weight * std::max(-p.second, 0.0);
    }
  return out;
}

double log_density(const likelihoods::Likelihood& likelihood, const Observations& data, Index j,
                   ConstMatrixView f) {
  double sum = 0;
  const auto* coupled = likelihood.coupled();
  for (Index i = 0; i < f.rows(); ++i)
    sum += data.weight_of(i) *
           (coupled != nullptr
                ? coupled->row_log_density(data.y.row(i).transpose(), f.row(i).transpose())
                : likelihood.log_density(data.y(i, j), f(i, 0)).value);
  return sum;
}

double mean_curvature(const likelihoods::Likelihood& likelihood, const Observations& data) {
  const Index n = data.size(), functions = data.functions();
  double sum = 0;
  Vector g(functions), w(functions);
  for (Index i = 0; i < n; ++i) {
    const Vector y = data.y.row(i);
    double row = 0;
    if (const auto* coupled = likelihood.coupled()) {
      coupled->row_derivatives(y, data.offset, g, w);
      row = w.sum() - w.squaredNorm() / w.sum();  // tr(W)
    } else {
      for (Index c = 0; c < functions; ++c) row += likelihood.curvature(y(c), data.offset(c)).value;
    }
    sum += data.weight_of(i) * row;
  }
  return sum / static_cast<double>(n * functions);
}

}  // namespace mercer::inference
