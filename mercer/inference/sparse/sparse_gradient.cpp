#include "mercer/inference/sparse/sparse_gradient.hpp"

#include "mercer/core/stop.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/cross_gradient.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

using linalg::Transpose;

// diag(s) a in place, rows in parallel.
void scale_rows(ConstVectorView s, Matrix& a) {
  linalg::for_panels(a.rows(), [&](Index first, Index n) {
    a.middleRows(first, n).array().colwise() *= s.segment(first, n).array();
  });
}

// a += diag(s) b.
void add_scaled_rows(ConstVectorView s, const Matrix& b, Matrix& a) {
  linalg::for_panels(a.rows(), [&](Index first, Index n) {
    a.middleRows(first, n) += s.segment(first, n).asDiagonal() * b.middleRows(first, n);
  });
}

}  // namespace

KernelGradient::KernelGradient(const BaseFactor& base, const Matrix& factor, bool with_base)
    : base_(base),
      factor_(factor),
      with_base_(with_base),
      gradient_(Vector::Zero(base.kernel().num_parameters())) {
  if (with_base_) base_gradient_ = Matrix::Zero(base.size(), base.base().cols());
}

// w: n x m, rows of T~ V'; W = w L_bb^-1 in place.
void KernelGradient::add_weights(ConstMatrixView x, Matrix& w) {
  linalg::solve_lower_right(base_.factor(), Transpose::no, w);
  Vector part(gradient_.size());
  operators::cross_gradient(base_.kernel(), x, base_.base(), w, part);
  gradient_ += part;
  if (with_base_) operators::input_gradient(base_.kernel(), x, base_.base(), w, base_gradient_);
}

Vector KernelGradient::add(const GradientRows& rows, bool take_diagonal, bool trace) {
  const Index n = rows.v.rows();
  // Omega V'B^-1 by two solves; between them the diagonal of Omega V'B^-1 V Omega.
  Matrix w = rows.v;
  scale_rows(rows.omega, w);
  linalg::solve_lower_right(factor_, Transpose::yes, w);
  const Vector diagonal = rows.diagonal_of_terms - rows.omega + linalg::squared_rows(w);
  linalg::solve_lower_right(factor_, Transpose::no, w);
  // w = right left' - Omega V'B^-1, and what is added or taken.
  linalg::gemm(1.0, rows.right, Transpose::no, rows.left, Transpose::yes, -1.0, w);
  Vector part(gradient_.size());
  if (trace) {
    add_scaled_rows(rows.omega, rows.v, w);
    operators::diagonal_gradient(base_.kernel(), rows.x, -0.5 * rows.omega, part);
    gradient_ += part;
  }
  if (take_diagonal) {
    add_scaled_rows(-diagonal, rows.v, w);
    operators::diagonal_gradient(base_.kernel(), rows.x, 0.5 * diagonal, part);
    gradient_ += part;
    if (taken_.size() == 0) taken_ = Matrix::Zero(base_.size(), base_.size());
    Matrix scaled = rows.v;
    scale_rows(diagonal, scaled);
    linalg::symmetric_gemm(1.0, rows.v, Transpose::yes, scaled, Transpose::no, 1.0, taken_);
  }
  add_weights(rows.x, w);
  return diagonal.head(n);
}

// T of the block = alpha alpha' - Lambda^-1 + Z B^-1 Z', Z = Lambda^-1 V'.
Vector KernelGradient::add_block(const SparseSlice& rows, const Matrix& v, const Matrix& l,
                                 ConstVectorView alpha, ConstVectorView mean_weights) {
  const Index n = v.rows();
  Matrix w = v;
  linalg::solve_lower(l, Transpose::no, w);
  linalg::solve_lower(l, Transpose::yes, w);
  linalg::solve_lower_right(factor_, Transpose::yes, w);
  Matrix inverse = Matrix::Identity(n, n);
  linalg::solve_lower(l, Transpose::no, inverse);
  Matrix t(n, n);
  linalg::gram(-1.0, inverse, 0.0, t);
  linalg::symmetric_gemm(1.0, w, Transpose::no, w, Transpose::yes, 1.0, t);
  t.noalias() += alpha * alpha.transpose();
  Vector part(gradient_.size());
  operators::weighted_gradient(base_.kernel(), rows.x, t, part);
  gradient_ += 0.5 * part;
  linalg::solve_lower_right(factor_, Transpose::no, w);
  linalg::gemm(1.0, Matrix(alpha), Transpose::no, Matrix(mean_weights), Transpose::yes, -1.0, w);
  Matrix tv(n, base_.size());
  linalg::gemm(1.0, t, Transpose::no, v, Transpose::no, 0.0, tv);
  w -= tv;
  if (taken_.size() == 0) taken_ = Matrix::Zero(base_.size(), base_.size());
  linalg::symmetric_gemm(1.0, v, Transpose::yes, tv, Transpose::no, 1.0, taken_);
  add_weights(rows.x, w);
  return t.diagonal();
}

void KernelGradient::finish(const Matrix& terms_gram, bool traces) {
  const Index m = base_.size();
  // V T~ V' = terms - (I - B^-1), and B - I = V Omega V' more with the trace term.
  Matrix g = Matrix::Identity(m, m);
  linalg::solve_lower(factor_, Transpose::no, g);
  linalg::solve_lower(factor_, Transpose::yes, g);
  g.diagonal().array() -= 1;
  g += terms_gram;
  if (traces) {
    linalg::gemm(1.0, factor_, Transpose::no, factor_, Transpose::yes, 1.0, g);
    g.diagonal().array() -= 1;
  }
  if (taken_.size() > 0) g -= taken_;
  g = 0.5 * (g + g.transpose()).eval();
  // L_bb^-T g L_bb^-1, and the jitter, which is a share of the mean diagonal of S_bb.
  linalg::solve_lower(base_.factor(), Transpose::yes, g);
  linalg::solve_lower_right(base_.factor(), Transpose::no, g);
  g.diagonal().array() += base_.relative_jitter() * g.trace() / static_cast<double>(m);
  g *= -0.5;
  Vector part(gradient_.size());
  operators::cross_gradient(base_.kernel(), base_.base(), base_.base(), g, part);
  gradient_ += part;
  if (!with_base_) return;
  g *= 2;  // a base point moves its row and its column
  operators::input_gradient(base_.kernel(), base_.base(), base_.base(), g, base_gradient_);
}

SparseGradient::SparseGradient(const Problem& problem, const BaseFactor& base, SparseModel model,
                               const SparseSolution& solution, bool with_base)
    : problem_(problem),
      base_(base),
      model_(model),
      solution_(solution),
      kernel_(base, solution.factor, with_base) {}

Vector SparseGradient::residual(const SparseSlice& s) const {
  return s.basis.cols() > 0 ? Vector(s.y - s.basis * solution_.beta) : s.y;
}

void SparseGradient::add(const Observations& rows) {
  check_sparse_rows(problem_, rows);
  by_noise_ += rows.replicates.slope(problem_.noise());
  const Matrix left = solution_.mean_weights;
  for_slices(rows.size(), [&](Index first, Index count) {
    stop_if_requested("summing a gradient over rows");
    const auto s = slice_of(problem_, rows, first, count);
    const Matrix v = base_.whitened(s.x);
    const bool diagonal = model_.lambda == Unexplained::diagonal;
    Vector lambda = s.noise, unexplained_share;
    if (diagonal || model_.trace_term) {
      const Vector k_less_q = unexplained(problem_.kernel, s.x, v);
      if (diagonal) lambda += k_less_q;
      if (model_.trace_term) unexplained_share = k_less_q.array() / s.noise.array().square();
    }
    const Vector omega = lambda.cwiseInverse();
    Matrix alpha(count, 1);
    alpha.col(0) = residual(s) - v * solution_.mean_weights;
    alpha.array() *= omega.array();
    const Vector of_rows = kernel_.add({s.x, v, omega, left, alpha, alpha.col(0).cwiseAbs2()},
                                       diagonal, model_.trace_term);
    by_noise_ += 0.5 * of_rows.dot(s.slope);
    if (model_.trace_term) by_noise_ += 0.5 * unexplained_share.dot(s.slope);
  });
}

void SparseGradient::add_block(const Observations& rows) {
  check_sparse_rows(problem_, rows);
  stop_if_requested("summing a gradient over blocks of rows");
  by_noise_ += rows.replicates.slope(problem_.noise());
  const auto s = slice_of(problem_, rows, 0, rows.size());
  const Matrix v = base_.whitened(s.x);
  const Matrix l = block_factor(problem_.kernel, s.x, v, s.noise);
  Vector alpha = residual(s) - v * solution_.mean_weights;
  linalg::solve_lower(l, Transpose::no, alpha);
  linalg::solve_lower(l, Transpose::yes, alpha);
  const Vector of_rows = kernel_.add_block(s, v, l, alpha, solution_.mean_weights);
  by_noise_ += 0.5 * of_rows.dot(s.slope);
}

Vector SparseGradient::finish() {
  const Vector& a = solution_.mean_weights;
  kernel_.finish(a * a.transpose(), model_.trace_term);
  Vector out(kernel_.gradient().size() + 1);
  out << kernel_.gradient(), by_noise_;
  return out;
}

}  // namespace mercer::inference
