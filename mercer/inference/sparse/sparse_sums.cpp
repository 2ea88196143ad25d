#include "mercer/inference/sparse/sparse_sums.hpp"

#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/inference/weights.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {

using linalg::Transpose;

void check_sparse_rows(const Problem& problem, const Observations& rows) {
  if (rows.y.rows() != rows.size())
    throw DimensionMismatch("sparse approximation: rows of y", rows.y.rows(), "rows of x",
                            rows.size());
  if (rows.y.cols() != 1)
    throw DimensionMismatch("sparse approximation: columns of y", rows.y.cols(),
                            "latent functions of Gaussian noise", 1);
  if (rows.x.cols() != problem.kernel.num_inputs())
    throw DimensionMismatch("sparse approximation: columns of x", rows.x.cols(),
                            "inputs of the kernel", problem.kernel.num_inputs());
  const auto noise = rows.noise.at(problem.noise());
  noise.require_size(rows.size(), "sparse approximation");
  if (rows.size() > 0) noise.require_positive("sparse approximation");
}

SparseSlice slice_of(const Problem& problem, const Observations& rows, Index first, Index count) {
  const auto part = [&](const Vector& all) -> Vector {
    return all.size() > 0 ? Vector(all.segment(first, count)) : Vector();
  };
  const RowNoise noise{part(rows.noise.weight), part(rows.noise.known)};
  SparseSlice out{rows.x.middleRows(first, count),
                  rows.y.col(0).segment(first, count),
                  noise.at(problem.noise()).vector(count),
                  noise.slope(problem.noise()).vector(count),
                  {}};
  out.basis = problem.basis(out.x);
  return out;
}

Matrix block_factor(const kernels::Kernel& kernel, ConstMatrixView x, ConstMatrixView v,
                    ConstVectorView noise) {
  Matrix lambda(x.rows(), x.rows());
  operators::dense_matrix(kernel, x, lambda);
  linalg::symmetric_gemm(-1.0, v, Transpose::no, v, Transpose::yes, 1.0, lambda);
  // K - Q is never negative on the diagonal; what is, is rounding error.
  lambda.diagonal() = lambda.diagonal().cwiseMax(0.0) + noise;
  return linalg::Cholesky(std::move(lambda)).storage();
}

SparseSums::SparseSums(const Problem& problem, const BaseFactor& base, SparseModel model)
    : problem_(problem), base_(base), model_(model) {
  const Index q = problem.basis(Matrix::Zero(1, problem.kernel.num_inputs())).cols();
  gram_ = Matrix::Zero(base.size() + 1 + q, base.size() + 1 + q);
}

void SparseSums::add_whitened(const Matrix& t, double log_det, Index rows) {
  linalg::gram(1.0, t, 1.0, gram_);
  log_det_ += log_det;
  rows_ += rows;
}

void SparseSums::add(const Observations& rows) {
  check_sparse_rows(problem_, rows);
  replicates_ += rows.replicates.log_likelihood(problem_.noise());
  const Index m = base_.size();
  for_slices(rows.size(), [&](Index first, Index count) {
    stop_if_requested("summing over rows");
    const auto s = slice_of(problem_, rows, first, count);
    Matrix t(count, gram_.cols());
    const Matrix v = base_.whitened(s.x);
    Vector lambda = s.noise;
    if (model_.lambda == Unexplained::diagonal || model_.trace_term) {
      const Vector left = unexplained(problem_.kernel, s.x, v);
      if (model_.trace_term) trace_ += left.cwiseQuotient(s.noise).sum();
      if (model_.lambda == Unexplained::diagonal) lambda += left;
    }
    const Vector scale = lambda.cwiseSqrt().cwiseInverse();
    linalg::for_panels(count, [&](Index from, Index n) {
      t.block(from, 0, n, m) = scale.segment(from, n).asDiagonal() * v.middleRows(from, n);
    });
    t.col(m) = s.y.cwiseProduct(scale);
    t.rightCols(s.basis.cols()) = scale.asDiagonal() * s.basis;
    add_whitened(t, lambda.array().log().sum(), count);
  });
}

void SparseSums::add_block(const Observations& rows) {
  check_sparse_rows(problem_, rows);
  replicates_ += rows.replicates.log_likelihood(problem_.noise());
  add_block(slice_of(problem_, rows, 0, rows.size()));
}

void SparseSums::add_block(const SparseSlice& s) {
  stop_if_requested("summing over blocks of rows");
  const Index m = base_.size(), rows = s.x.rows();
  Matrix t(rows, gram_.cols());
  t.leftCols(m) = base_.whitened(s.x);
  t.col(m) = s.y;
  t.rightCols(s.basis.cols()) = s.basis;
  const Matrix l = block_factor(problem_.kernel, s.x, t.leftCols(m), s.noise);
  linalg::solve_lower(l, Transpose::no, t);
  add_whitened(t, 2 * l.diagonal().array().log().sum(), rows);
}

SparseSolution SparseSums::finish_without_mean() {
  const Index m = base_.size(), q = gram_.cols() - m - 1;
  Matrix b = gram_.topLeftCorner(m, m);
  b.diagonal().array() += 1;
  SparseSolution out;
  out.rows = rows_;
  out.factor = linalg::Cholesky(std::move(b)).storage();
  out.factor.triangularView<Eigen::StrictlyUpper>().setZero();
  Matrix u = gram_.topRightCorner(m, 1 + q);
  linalg::solve_lower(out.factor, Transpose::no, u);
  out.trend_weights = u.rightCols(q);
  out.mean_weights = u.col(0);
  linalg::solve_lower(out.factor, Transpose::yes, out.mean_weights);
  return out;
}

SparseSolution SparseSums::finish() {
  auto out = finish_without_mean();
  const Index m = base_.size(), q = gram_.cols() - m - 1;
  Matrix u(m, 1 + q);
  u << gram_.col(m).head(m), out.trend_weights;
  linalg::solve_lower(out.factor, Transpose::no, u.leftCols(1));
  const Matrix inner = gram_.bottomRightCorner(1 + q, 1 + q) - u.transpose() * u;
  double quadratic = inner(0, 0);
  if (q > 0) {
    auto trend = solve_trend(inner.bottomRightCorner(q, q), inner.col(0).tail(q));
    out.beta = std::move(trend.beta);
    out.beta_covariance = std::move(trend.covariance);
    quadratic -= inner.col(0).tail(q).dot(out.beta);
    out.mean_weights = u.col(0) - out.trend_weights * out.beta;
    linalg::solve_lower(out.factor, Transpose::yes, out.mean_weights);
  }
  const double log_det = log_det_ + 2 * out.factor.diagonal().array().log().sum();
  out.evidence = -0.5 * (quadratic + log_det +
                         static_cast<double>(rows_) * std::log(2 * std::numbers::pi) + trace_) +
                 replicates_;
  return out;
}

}  // namespace mercer::inference
