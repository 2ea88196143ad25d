#include "mercer/inference/laplace/curved_operator.hpp"

#include <algorithm>
#include <functional>

#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::inference {
namespace {

constexpr Index kPanel = 64;
// Of I + G'G: a Cholesky factorisation of this size takes a fraction of a second.
constexpr Index kMostCoupledRank = 2000, kLeastCoupledRank = 10;

// B_c = I + S_c K S_c, its lower triangle.
void fill_block(const Matrix& k, ConstVectorView s, Matrix& b) {
  const Index n = k.rows();
  b.resize(n, n);
  const auto fill = [&](Index task, int) {
    for (Index j = task * kPanel; j < std::min(n, (task + 1) * kPanel); ++j) {
      const Index below = n - j;
      b.col(j).tail(below) = s(j) * s.tail(below).cwiseProduct(k.col(j).tail(below));
      b(j, j) += 1;
    }
  };
  parallel_for((n + kPanel - 1) / kPanel, std::ref(fill));
}

// a += diag(q) inverse diag(q).
void add_scaled(const Matrix& inverse, ConstVectorView q, Matrix& a) {
  const Index n = a.rows();
  const auto fill = [&](Index task, int) {
    for (Index j = task * kPanel; j < std::min(n, (task + 1) * kPanel); ++j)
      a.col(j) += q(j) * q.cwiseProduct(inverse.col(j));
  };
  parallel_for((n + kPanel - 1) / kPanel, std::ref(fill));
}

}  // namespace

void CurvedOperator::apply(ConstMatrixView x, MatrixView y) const {
  const Index n = root_.points();
  const auto in = unstacked(x, n);
  scaled_.resize(n, in.cols());
  product_.resize(n, in.cols());
  root_.apply(in, scaled_);
  k_.apply(scaled_, product_);
  Eigen::Map<Matrix> out(y.data(), n, in.cols());
  root_.apply_transposed(product_, scaled_);
  out = in + scaled_;
}

CurvedFactor::CurvedFactor(const Matrix& k, const CurvatureRoot& root,
                           std::unique_ptr<CurvedFactor> old)
    : root_(root) {
  const Index n = k.rows();
  Matrix sum;
  if (root_.coupled()) sum = Matrix::Zero(n, n);
  for (Index c = 0; c < root_.functions(); ++c) {
    Matrix b(0, 0);
    if (old && c < static_cast<Index>(old->blocks_.size()))
      b = std::move(old->blocks_[static_cast<std::size_t>(c)]).storage();
    fill_block(k, root_.scale().col(c), b);
    blocks_.emplace_back(std::move(b));
    if (root_.coupled())
      add_scaled(linalg::Cholesky(blocks_.back()).inverse(), root_.direction().col(c), sum);
  }
  if (!root_.coupled()) return;
  // Rows without curvature have no direction; there U is to be left alone.
  for (Index i = 0; i < n; ++i)
    if (root_.direction().row(i).isZero(0)) sum(i, i) = 1;
  coupling_.emplace(std::move(sum));
}

void CurvedFactor::solve_blocks(MatrixView b) const {
  const Index n = root_.points();
  for (std::size_t c = 0; c < blocks_.size(); ++c)
    blocks_[c].solve_in_place(b.middleRows(static_cast<Index>(c) * n, n));
}

void CurvedFactor::solve_in_place(MatrixView b) const {
  if (!coupling_) {
    solve_blocks(b);
    return;
  }
  const Index n = root_.points();
  Matrix y = b;
  const Matrix outside = root_.along(unstacked(y, n));
  solve_blocks(y);
  Matrix inside = root_.along(unstacked(y, n));
  coupling_->solve_in_place(inside);
  Matrix correction = Matrix::Zero(y.rows(), y.cols());
  Eigen::Map<Matrix> flat(correction.data(), n, root_.functions() * b.cols());
  root_.add_along(1.0, inside, flat);
  solve_blocks(correction);
  y -= correction;
  root_.add_along(1.0, outside, Eigen::Map<Matrix>(y.data(), n, flat.cols()));
  b = y;
}

void CurvedFactor::solve(ConstMatrixView r, MatrixView z) const {
  z = r;
  solve_in_place(z);
}

double CurvedFactor::log_det() const {
  double sum = 0;
  for (const auto& block : blocks_) sum += block.log_det();
  return coupling_ ? sum + coupling_->log_det() : sum;
}

// z = L e; coupled: (I - U U') L e + U e'.
void CurvedFactor::sample(Rng& rng, MatrixView z) const {
  const Index n = root_.points();
  rng.fill_normal(z);
  for (std::size_t c = 0; c < blocks_.size(); ++c)
    linalg::multiply_lower(blocks_[c].factor(), z.middleRows(static_cast<Index>(c) * n, n));
  if (!coupling_) return;
  Matrix along(n, z.cols());
  rng.fill_normal(along);
  Matrix stacked = z;
  Eigen::Map<Matrix> flat(stacked.data(), n, root_.functions() * z.cols());
  along -= root_.along(flat);
  root_.add_along(1.0, along, flat);
  z = stacked;
}

// Of B: z = P^-1 r. Of K + W^-1: z = S^-1 P^-1 S^-1 r.
void CurvedPreconditioner::solve(ConstMatrixView r, MatrixView z) const {
  Index c = 0;
  for (const auto& part : parts_) {
    const Index n = part->size();
    if (scale_.size() == 0) {
      part->solve(r.middleRows(c * n, n), z.middleRows(c * n, n));
    } else {
      const Vector inverse = scale_.col(c).cwiseInverse();
      Matrix scaled = inverse.asDiagonal() * r.middleRows(c * n, n);
      Matrix solved(n, r.cols());
      part->solve(scaled, solved);
      z.middleRows(c * n, n) = inverse.asDiagonal() * solved;
    }
    ++c;
  }
}

double CurvedPreconditioner::log_det() const {
  double sum = 0;
  Index c = 0;
  for (const auto& part : parts_) {
    sum += part->log_det();
    if (scale_.size() > 0) sum += part->row_space().sum(2 * scale_.col(c++).array().log().sum());
  }
  return sum;
}

void CurvedPreconditioner::sample(Rng& rng, MatrixView z) const {
  Index c = 0;
  for (const auto& part : parts_) {
    const Index n = part->size();
    part->sample(rng, z.middleRows(c * n, n));
    if (scale_.size() > 0) z.middleRows(c * n, n).array().colwise() *= scale_.col(c).array();
    ++c;
  }
}

Index CoupledLowRank::rank_for(Index functions, Index available) {
  return std::min(available, std::max(kLeastCoupledRank, kMostCoupledRank / functions));
}

// Block (c, d) of G'G is F' diag(W_cd) F.
CoupledLowRank::CoupledLowRank(const Matrix& factor, Index rank, const CurvatureRoot& root)
    : f_(factor.leftCols(rank)), root_(root) {
  const Index functions = root.functions();
  Matrix small = Matrix::Identity(rank * functions, rank * functions);
  for (Index c = 0; c < functions; ++c)
    for (Index d = 0; d <= c; ++d) {
      const Matrix weighted = root.block(c, d).asDiagonal() * f_;
      linalg::gemm(1.0, f_, linalg::Transpose::yes, weighted, linalg::Transpose::no, 1.0,
                   small.block(c * rank, d * rank, rank, rank));
    }
  small_.emplace(std::move(small));
}

void CoupledLowRank::add_low_rank(double factor, const Matrix& w, MatrixView out) const {
  const Index n = root_.points(), columns = root_.functions() * out.cols();
  Matrix product(n, columns);
  linalg::gemm(factor, f_, linalg::Transpose::no,
               Eigen::Map<const Matrix>(w.data(), f_.cols(), columns), linalg::Transpose::no, 0.0,
               product);
  const Matrix pulled = root_.transposed_times(product);
  out += Eigen::Map<const Matrix>(pulled.data(), out.rows(), out.cols());
}

void CoupledLowRank::solve(ConstMatrixView r, MatrixView z) const {
  const Index columns = root_.functions() * r.cols();
  Matrix stacked = r;
  const Matrix pushed = root_.times(unstacked(stacked, root_.points()));
  Matrix w(f_.cols() * root_.functions(), r.cols());
  linalg::gemm(1.0, f_, linalg::Transpose::yes, pushed, linalg::Transpose::no, 0.0,
               Eigen::Map<Matrix>(w.data(), f_.cols(), columns));
  small_->solve_in_place(w);
  z = r;
  add_low_rank(-1.0, w, z);
}

void CoupledLowRank::sample(Rng& rng, MatrixView z) const {
  rng.fill_normal(z);
  Matrix w(f_.cols() * root_.functions(), z.cols());
  rng.fill_normal(w);
  add_low_rank(1.0, w, z);
}

}  // namespace mercer::inference
