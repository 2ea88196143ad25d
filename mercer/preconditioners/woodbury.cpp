#include "mercer/preconditioners/woodbury.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::preconditioners {
namespace {

using linalg::gemm;
using linalg::multiply_in_place;
using linalg::Transpose;

// One pass leaves U orthonormal to about eps S_1 / max(S_i, 1); above this, a second one.
constexpr double benign_spread = 1e6;
// Beyond this v - U U' v is taken twice: what is left of it would be rounding error.
constexpr double project_twice_above = 1e10;

/// m(i, j) = entries(i) m(i, j).
void scale_rows(const Vector& entries, MatrixView m) {
  for (Index j = 0; j < m.cols(); ++j) m.col(j).array() *= entries.array();
}

/// k x t scratch of the calling thread, so that a warm solve allocates nothing.
MatrixView scratch(std::vector<double>& buffer, Index rows, Index columns) {
  const auto needed = static_cast<std::size_t>(rows * columns);
  if (buffer.size() < needed) buffer.resize(needed);
  return Eigen::Map<Matrix>(buffer.data(), rows, columns);
}

}  // namespace

Woodbury::Woodbury(Matrix&& factor, const linalg::Diagonal& d, const linalg::RowSpace& space)
    : space_(space), u_(std::move(factor)) {
  linalg::check_on_all_ranks(space, "preconditioner", [&] {
    if (u_.rows() != space.size())
      throw DimensionMismatch("Woodbury: rows of the factor", u_.rows(), "rows held here",
                              space.size());
    if (space.split() && u_.rows() == 0) return;  // D of no rows
    d.require_size(u_.rows(), "preconditioner");
    d.require_positive("preconditioner");
  });
  const Vector entries = d.vector(u_.rows());
  root_ = entries.cwiseSqrt();
  for (Index j = 0; j < u_.cols(); ++j) u_.col(j).array() /= root_.array();
  orthogonalise();
  log_det_ = space_.sum(entries.array().log().sum()) + s_.array().log1p().sum();
}

// F F' = U S U'. First from the eigenvectors of F'F; these are orthonormal in F only up to the
// spread of S, so when that is wide the result is orthonormalised again and S follows:
//   F = U1 T,  U1'U1 = R'R,  U2 = U1 R^-1,  (R T)(R T)' = W S W',  U = U2 W.
void Woodbury::orthogonalise() {
  const Index k = u_.cols();
  if (k == 0) return;
  Matrix gram(k, k);
  linalg::gram(space_, u_, gram);
  const auto first = linalg::symmetric_eigen(gram);
  const double largest = std::max(first.values(k - 1), 0.0);
  const double rounding = static_cast<double>(k) * std::numeric_limits<double>::epsilon() * largest;
  dropped_ = 0;
  while (dropped_ < k && !(first.values(dropped_) > rounding)) ++dropped_;
  const Index m = k - dropped_;
  s_ = first.values.tail(m);
  if (m == 0) {
    u_.resize(u_.rows(), 0);
    return;
  }
  const Matrix v = first.vectors.rightCols(m);
  multiply_in_place(u_, v * s_.cwiseSqrt().cwiseInverse().asDiagonal());
  if (largest <= benign_spread * std::max(s_(0), 1.0)) return;

  orthogonalise_again();
}

void Woodbury::orthogonalise_again() {
  const Index m = u_.cols();
  Matrix gram(m, m);
  linalg::gram(space_, u_, gram);
  const auto eigen = linalg::symmetric_eigen(gram);
  // The columns have length 1 but for those whose S was rounding error; what these leave here is
  // rounding error of F F' too.
  Index cut = 0;
  while (cut < m && eigen.values(cut) < 0.01) ++cut;
  dropped_ += cut;
  const Index kept = m - cut;
  const Matrix q = eigen.vectors.rightCols(kept);
  const Vector length = eigen.values.tail(kept).cwiseSqrt();
  // R = diag(length) Q', T T' = S.
  const Matrix rt = length.asDiagonal() * q.transpose() * s_.cwiseSqrt().asDiagonal();
  Matrix middle(kept, kept), turn(m, kept);
  gemm(1.0, rt, Transpose::no, rt, Transpose::yes, 0.0, middle);
  const auto last = linalg::symmetric_eigen(middle);
  gemm(1.0, q * length.cwiseInverse().asDiagonal(), Transpose::no, last.vectors, Transpose::no, 0.0,
       turn);
  multiply_in_place(u_, turn);
  // S from the rows of W'R T, not from the eigenvalues: these carry an error of eps S_1, which is
  // all there is of the small ones. A row of length s^1/2 is known to eps S_1^1/2, and what its
  // direction is off by enters s in the second order.
  Matrix rows(kept, m);
  gemm(1.0, last.vectors, Transpose::yes, rt, Transpose::no, 0.0, rows);
  s_ = rows.rowwise().squaredNorm();
}

void Woodbury::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("Woodbury: rows of r", r.rows(), "size", size());
  if (z.rows() != size() || z.cols() != r.cols())
    throw DimensionMismatch("Woodbury: columns of z", z.cols(), "columns of r", r.cols());
  z = r;
  for (Index j = 0; j < z.cols(); ++j) z.col(j).array() /= root_.array();
  thread_local std::vector<double> buffer, second_buffer;
  if (rank() > 0) {
    MatrixView c = scratch(buffer, rank(), r.cols());
    linalg::inner_products(space_, u_, z, c);
    if (s_(rank() - 1) <= project_twice_above) {
      // z - U S (I + S)^-1 U' z
      for (Index j = 0; j < c.cols(); ++j) c.col(j).array() *= s_.array() / (1 + s_.array());
      gemm(-1.0, u_, Transpose::no, c, Transpose::no, 1.0, z);
    } else {
      // (I - U U') z, twice, plus U (I + S)^-1 U' z
      MatrixView e = scratch(second_buffer, rank(), r.cols());
      gemm(-1.0, u_, Transpose::no, c, Transpose::no, 1.0, z);
      linalg::inner_products(space_, u_, z, e);
      for (Index j = 0; j < c.cols(); ++j)
        e.col(j).array() =
            (c.col(j).array() + e.col(j).array()) / (1 + s_.array()) - e.col(j).array();
      gemm(1.0, u_, Transpose::no, e, Transpose::no, 1.0, z);
    }
  }
  for (Index j = 0; j < z.cols(); ++j) z.col(j).array() /= root_.array();
}

// D^1/2 (I + U ((I + S)^1/2 - I) U') xi has covariance P.
void Woodbury::sample(Rng& rng, MatrixView z) const {
  if (z.rows() != size()) throw DimensionMismatch("Woodbury: rows of z", z.rows(), "size", size());
  linalg::fill_normal(rng, space_, z);
  if (rank() > 0) {
    Matrix c(rank(), z.cols());
    linalg::inner_products(space_, u_, z, c);
    // sqrt(1 + s) - 1 without cancellation
    scale_rows((s_.array() / ((1 + s_.array()).sqrt() + 1)).matrix(), c);
    gemm(1.0, u_, Transpose::no, c, Transpose::no, 1.0, z);
  }
  scale_rows(root_, z);
}

double Woodbury::bytes(Index n, Index rank) {
  const auto k = static_cast<double>(std::min(rank, n));
  return 8.0 * (static_cast<double>(n) * (k + 2) + 4 * k * k);
}

double Woodbury::build_flops(Index n, Index rank) {
  const auto k = static_cast<double>(std::min(rank, n));
  return 3.0 * static_cast<double>(n) * k * k + 9.0 * k * k * k;
}

double Woodbury::apply_flops(Index n, Index rank) {
  return 4.0 * static_cast<double>(n) * static_cast<double>(std::min(rank, n));
}

}  // namespace mercer::preconditioners
