#include "mercer/linalg/cholesky.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/detail/lapack.hpp"
#include "mercer/linalg/detail/serial_blas.hpp"

namespace mercer::linalg {
namespace {

using detail::blas_int;

/// A square column-major matrix seen as tiles; tile (i, j) is its row i and column j of tiles.
class Tiles {
 public:
  explicit Tiles(Matrix& a)
      : data_(a.data()),
        n_(a.rows()),
        side_(n_ >= 1536 ? 256 : 128),
        count_((n_ + side_ - 1) / side_) {}
  Index count() const { return count_; }
  Index first(Index i) const { return i * side_; }
  int size(Index i) const { return blas_int(std::min(side_, n_ - i * side_)); }
  int ld() const { return blas_int(std::max<Index>(n_, 1)); }
  double* at(Index i, Index j) const { return data_ + i * side_ + j * side_ * n_; }

 private:
  double* data_;
  Index n_, side_, count_;
};

/// body(i, j) in parallel for 0 <= j <= i < count.
template <class Body>
void for_lower_pairs(Index count, const Body& body) {
  const auto task = [&](Index t, int) {
    auto i = static_cast<Index>((std::sqrt(8.0 * static_cast<double>(t) + 1.0) - 1.0) / 2.0);
    while (i * (i + 1) / 2 > t) --i;
    while ((i + 1) * (i + 2) / 2 <= t) ++i;
    body(i, t - i * (i + 1) / 2);
  };
  parallel_for(count * (count + 1) / 2, std::ref(task));
}

template <class Body>
void for_each(Index count, const Body& body) {
  const auto task = [&](Index i, int) { body(i); };
  parallel_for(count, std::ref(task));
}

void check_finite(const Matrix& a) {
  const Index columns_at_once = 64;
  for_each((a.cols() + columns_at_once - 1) / columns_at_once, [&](Index panel) {
    const Index end = std::min(a.cols(), (panel + 1) * columns_at_once);
    for (Index j = panel * columns_at_once; j < end; ++j) {
      double sum = 0;  // 0 times anything that is not finite is NaN
      for (Index i = j; i < a.rows(); ++i) sum += 0.0 * a(i, j);
      if (sum == 0) continue;
      for (Index i = j; i < a.rows(); ++i)
        if (!std::isfinite(a(i, j)))
          throw InvalidArgument(fmt::format(
              "Cholesky: the matrix holds {} at row {}, column {}, beyond double precision; look "
              "for "
              "huge values in the data and among the hyperparameters (`signal_variance`, `noise`, "
              "`lengthscale`, numbers in `kernel`)",
              a(i, j), i, j));
    }
  });
}

void factor_diagonal_tile(const Tiles& t, Index k) {
  const int size = t.size(k), ld = t.ld();
  int info = 0;
  dpotrf_("L", &size, t.at(k, k), &ld, &info);
  if (info == 0) return;
  const Index pivot = t.first(k) + info - 1;
  throw NotPositiveDefinite(
      fmt::format("Cholesky: the matrix is not positive definite at row {}", pivot), pivot);
}

/// A = L L', right-looking: factor a diagonal tile, solve its column, update what is right of it.
void factor_tiles(const Tiles& t) {
  for (Index k = 0; k < t.count(); ++k) {
    stop_if_requested("factoring a matrix");
    factor_diagonal_tile(t, k);
    const Index below = t.count() - k - 1;
    for_each(below, [&](Index offset) {
      const Index i = k + 1 + offset;
      cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, t.size(i),
                  t.size(k), 1.0, t.at(k, k), t.ld(), t.at(i, k), t.ld());
    });
    for_lower_pairs(below, [&](Index row, Index column) {
      const Index i = k + 1 + row, j = k + 1 + column;
      if (i == j)
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, t.size(i), t.size(k), -1.0, t.at(i, k),
                    t.ld(), 1.0, t.at(i, i), t.ld());
      else
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, t.size(i), t.size(j), t.size(k), -1.0,
                    t.at(i, k), t.ld(), t.at(j, k), t.ld(), 1.0, t.at(i, j), t.ld());
    });
  }
}

/// L := L^-1 (the tile algorithm of PLASMA's dtrtri, lower).
void invert_factor(const Tiles& t) {
  for (Index k = 0; k < t.count(); ++k) {
    stop_if_requested("inverting a matrix");
    const Index below = t.count() - k - 1;
    for_each(below, [&](Index offset) {
      const Index i = k + 1 + offset;
      cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, t.size(i),
                  t.size(k), -1.0, t.at(k, k), t.ld(), t.at(i, k), t.ld());
    });
    for_each(below * k, [&](Index task) {
      const Index i = k + 1 + task % below, j = task / below;
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, t.size(i), t.size(j), t.size(k), 1.0,
                  t.at(i, k), t.ld(), t.at(k, j), t.ld(), 1.0, t.at(i, j), t.ld());
    });
    for_each(k, [&](Index j) {
      cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, t.size(k),
                  t.size(j), 1.0, t.at(k, k), t.ld(), t.at(k, j), t.ld());
    });
    const int size = t.size(k), ld = t.ld();
    int info = 0;
    dtrtri_("L", "N", &size, t.at(k, k), &ld, &info);
  }
}

/// W := W' W, lower triangle, for lower-triangular W (PLASMA's dlauum).
void multiply_by_transpose(const Tiles& t) {
  for (Index m = 0; m < t.count(); ++m) {
    stop_if_requested("inverting a matrix");
    for_lower_pairs(m, [&](Index i, Index j) {
      if (i == j)
        cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, t.size(i), t.size(m), 1.0, t.at(m, i),
                    t.ld(), 1.0, t.at(i, i), t.ld());
      else
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, t.size(i), t.size(j), t.size(m), 1.0,
                    t.at(m, i), t.ld(), t.at(m, j), t.ld(), 1.0, t.at(i, j), t.ld());
    });
    for_each(m, [&](Index j) {
      cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, t.size(m),
                  t.size(j), 1.0, t.at(m, m), t.ld(), t.at(m, j), t.ld());
    });
    const int size = t.size(m), ld = t.ld();
    int info = 0;
    dlauum_("L", &size, t.at(m, m), &ld, &info);
  }
}

void mirror_lower(const Tiles& t) {
  for_lower_pairs(t.count(), [&](Index i, Index j) {
    const double* from = t.at(i, j);
    double* to = t.at(j, i);
    const Index ld = t.ld();
    for (Index c = 0; c < t.size(j); ++c)
      for (Index r = i == j ? c + 1 : 0; r < t.size(i); ++r) to[c + r * ld] = from[r + c * ld];
  });
}

}  // namespace

Cholesky::Cholesky(Matrix a) : l_(std::move(a)) {
  if (l_.rows() != l_.cols())
    throw DimensionMismatch("Cholesky: rows of a", l_.rows(), "columns of a", l_.cols());
  const detail::SerialBlas serial;
  check_finite(l_);
  factor_tiles(Tiles(l_));
}

double Cholesky::log_det() const {
  double sum = 0;
  for (Index i = 0; i < size(); ++i) sum += std::log(l_(i, i));
  return 2 * sum;
}

void Cholesky::solve_in_place(MatrixView b) const {
  solve_lower(l_, Transpose::no, b);
  solve_lower(l_, Transpose::yes, b);
}

void Cholesky::solve_lower_in_place(MatrixView b) const { solve_lower(l_, Transpose::no, b); }

Matrix Cholesky::inverse() && {
  const detail::SerialBlas serial;
  const Tiles t(l_);
  invert_factor(t);
  multiply_by_transpose(t);
  mirror_lower(t);
  return std::move(l_);
}

double cholesky_bytes(Index n) { return 8.0 * static_cast<double>(n) * static_cast<double>(n); }

double cholesky_flops(Index n) {
  const auto x = static_cast<double>(n);
  return x * x * x / 3.0;
}

double cholesky_rounding(Index n) {
  constexpr Index side = 256;  // the largest tile, also of triangular solves
  const Index roundings = std::min(n, side + n / side + 1) + 2;
  return static_cast<double>(roundings) * 0.5 * std::numeric_limits<double>::epsilon();
}

}  // namespace mercer::linalg
