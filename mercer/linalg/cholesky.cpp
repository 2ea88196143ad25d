#include "mercer/linalg/cholesky.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/detail/lapack.hpp"
#include "mercer/linalg/detail/serial_blas.hpp"
#include "mercer/linalg/detail/tile_queue.hpp"

namespace mercer::linalg {
namespace {

using detail::blas_int;

// Tiles of large matrices are such that a product of two of them amortises its overhead; those of
// small matrices leave enough tiles for several threads, and are what OpenBLAS multiplies without
// packing them first.
constexpr Index kLargeMatrix = 1536, kLargeTile = 256, kSmallTile = 96;

// As equal as multiples of 8 allow.
Index tile_side(Index n) {
  if (n >= kLargeMatrix) return kLargeTile;
  const Index count = std::max<Index>(1, (n + kSmallTile - 1) / kSmallTile);
  return std::max<Index>(8, ((n + count - 1) / count + 7) / 8 * 8);
}

/// A square column-major matrix seen as tiles; tile (i, j) is its row i and column j of tiles.
class Tiles {
 public:
  explicit Tiles(Matrix& a)
      : data_(a.data()), n_(a.rows()), side_(tile_side(n_)), count_((n_ + side_ - 1) / side_) {}
  Index count() const { return count_; }
  Index side() const { return side_; }
  Index first(Index i) const { return i * side_; }
  int size(Index i) const { return blas_int(std::min(side_, n_ - i * side_)); }
  int ld() const { return blas_int(std::max<Index>(n_, 1)); }
  double* at(Index i, Index j) const { return data_ + i * side_ + j * side_ * n_; }
  /// Which tile of all, by columns.
  Index number(Index i, Index j) const { return i + j * count_; }

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
      // 0 times anything that is not finite is NaN.
      if ((a.col(j).tail(a.rows() - j) * 0.0).sum() == 0) continue;
      for (Index i = j; i < a.rows(); ++i)
        if (!std::isfinite(a(i, j)))
          throw InvalidArgument(fmt::format(
              "Cholesky: the matrix holds {} at row {}, column {}, beyond double precision; look "
              "for huge values in the data and among the hyperparameters (`signal_variance`, "
              "`noise`, `lengthscale`, numbers in `kernel`)",
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

/// A = L L', left-looking: a tile is made by one task, which takes out what the columns before it
/// explain and then solves with the diagonal tile (or factors it).
void factor_tiles(const Tiles& t) {
  std::vector<std::pair<Index, Index>> tasks;
  for (Index k = 0; k < t.count(); ++k)
    for (Index i = k; i < t.count(); ++i) tasks.emplace_back(i, k);
  constexpr auto doing = "factoring a matrix";
  detail::TileQueue queue(t.count() * t.count(), doing);
  queue.run(static_cast<Index>(tasks.size()), [&](Index task) {
    const auto [i, k] = tasks[static_cast<std::size_t>(task)];
    for (Index m = 0; m < k; ++m) {
      if (!queue.wait_for(t.number(i, m)) || !queue.wait_for(t.number(k, m))) return;
      stop_if_requested(doing);
      if (i == k)
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, t.size(k), t.size(m), -1.0, t.at(k, m),
                    t.ld(), 1.0, t.at(k, k), t.ld());
      else
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, t.size(i), t.size(k), t.size(m), -1.0,
                    t.at(i, m), t.ld(), t.at(k, m), t.ld(), 1.0, t.at(i, k), t.ld());
    }
    if (i == k) {
      factor_diagonal_tile(t, k);
    } else {
      if (!queue.wait_for(t.number(k, k))) return;
      cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, t.size(i),
                  t.size(k), 1.0, t.at(k, k), t.ld(), t.at(i, k), t.ld());
    }
    queue.finish(t.number(i, k));
  });
}

// to = from', in squares that share cache lines.
void copy_transposed(const double* from, Index ld_from, int rows, int columns, double* to,
                     Index ld_to) {
  constexpr int square = 8;
  for (int c = 0; c < columns; c += square)
    for (int r = 0; r < rows; r += square)
      for (int j = c; j < std::min(c + square, columns); ++j)
        for (int i = r; i < std::min(r + square, rows); ++i)
          to[j + i * ld_to] = from[i + j * ld_from];
}

/// A^-1 = V V' with V = L^-T. V is written above the diagonal, which L leaves free, and its
/// diagonal tiles (transposed: the inverses of those of L) beside the matrix; then V V' in place of
/// L.
class Inversion {
 public:
  explicit Inversion(const Tiles& tiles)
      : t_(tiles),
        diagonal_(t_.side(), t_.side() * t_.count()),
        queue_(t_.count() * t_.count(), "inverting a matrix") {}

  void run() {
    std::vector<std::pair<Index, Index>> tasks;
    for (Index m = 0; m < t_.count(); ++m)
      for (Index back = 0; back <= m; ++back) tasks.emplace_back(m - back, m);
    const auto of_root = static_cast<Index>(tasks.size());
    for (Index i = 0; i < t_.count(); ++i)
      for (Index j = 0; j <= i; ++j) tasks.emplace_back(i, j);
    queue_.run(static_cast<Index>(tasks.size()), [&](Index task) {
      const auto [i, j] = tasks[static_cast<std::size_t>(task)];
      if (task >= of_root)
        product(i, j);
      else if (i == j)
        diagonal_root(i);
      else
        root(i, j);
    });
  }

 private:
  double* diagonal(Index m) { return diagonal_.data() + m * t_.side() * t_.side(); }
  int side() const { return blas_int(t_.side()); }

  void diagonal_root(Index m) {
    const int size = t_.size(m), ld = side();
    for (Index c = 0; c < size; ++c)
      std::copy(t_.at(m, m) + c + c * t_.ld(), t_.at(m, m) + size + c * t_.ld(),
                diagonal(m) + c + c * ld);
    int info = 0;
    dtrtri_("L", "N", &size, diagonal(m), &ld, &info);
    queue_.finish(t_.number(m, m));
  }

  // V_jm = -(V_jj L_mj' + sum of V_jk L_mk' over j < k < m) V_mm
  void root(Index j, Index m) {
    const int rows = t_.size(j), columns = t_.size(m), ld = t_.ld();
    double* out = t_.at(j, m);
    copy_transposed(t_.at(m, j), ld, columns, rows, out, ld);
    if (!queue_.wait_for(t_.number(j, j))) return;
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, rows, columns, 1.0,
                diagonal(j), side(), out, ld);
    for (Index k = j + 1; k < m; ++k) {
      if (!queue_.wait_for(t_.number(j, k))) return;
      stop_if_requested("inverting a matrix");
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, rows, columns, t_.size(k), 1.0,
                  t_.at(j, k), ld, t_.at(m, k), ld, 1.0, out, ld);
    }
    if (!queue_.wait_for(t_.number(m, m))) return;
    cblas_dtrmm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, columns,
                -1.0, diagonal(m), side(), out, ld);
    queue_.finish(t_.number(j, m));
  }

  // Tile (i, j) of V V', j <= i: sum of V_im V_jm' over m >= i
  void product(Index i, Index j) {
    // Tile (i, j) of L is read for V_ki, k < i.
    for (Index k = 0; k <= i; ++k)
      if (!queue_.wait_for(t_.number(k, i))) return;
    const int rows = t_.size(i), columns = t_.size(j), ld = t_.ld();
    double* out = t_.at(i, j);
    if (i == j) {
      for (Index c = 0; c < rows; ++c)
        std::copy(diagonal(i) + c + c * side(), diagonal(i) + rows + c * side(), out + c + c * ld);
      int info = 0;
      dlauum_("L", &rows, out, &ld, &info);
    } else {
      copy_transposed(t_.at(j, i), ld, columns, rows, out, ld);
      cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, rows, columns,
                  1.0, diagonal(i), side(), out, ld);
    }
    for (Index m = i + 1; m < t_.count(); ++m) {
      if (!queue_.wait_for(t_.number(i, m)) || !queue_.wait_for(t_.number(j, m))) return;
      stop_if_requested("inverting a matrix");
      if (i == j)
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, rows, t_.size(m), 1.0, t_.at(i, m), ld,
                    1.0, out, ld);
      else
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, rows, columns, t_.size(m), 1.0,
                    t_.at(i, m), ld, t_.at(j, m), ld, 1.0, out, ld);
    }
  }

  const Tiles& t_;
  Matrix diagonal_;
  detail::TileQueue queue_;
};

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

Matrix Cholesky::lower_inverse() && {
  const detail::SerialBlas serial;
  const Tiles t(l_);
  Inversion(t).run();
  return std::move(l_);
}

Matrix Cholesky::inverse() && {
  Matrix out = std::move(*this).lower_inverse();
  mirror_lower(Tiles(out));
  return out;
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
