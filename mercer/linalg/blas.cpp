// Fixed panels over BLAS. A product is cut by its shape alone, never by the number of threads:
//   - the output is cut into tiles, each one task;
//   - when that gives few tasks and the inner dimension is long, the inner dimension is cut too,
//     each part into its own buffer (at most max_tasks tiles in all), added up in order.
#include "mercer/linalg/blas.hpp"

#include <cblas.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/subnormals.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/detail/lapack.hpp"
#include "mercer/linalg/detail/serial_blas.hpp"

namespace mercer::linalg {
namespace {

constexpr Index tile = 256;         // columns (and rows, for wide outputs) of an output tile
constexpr Index tall_tile = 1024;   // rows of an output tile when there are few columns
constexpr Index enough_tasks = 8;   // with fewer output tiles than this, the inner sum is cut too
constexpr Index max_tasks = 16;     // buffers at most, when it is
constexpr Index inner_part = 1024;  // shortest part of the inner sum
constexpr Index dot_chunk = 4096;
constexpr Index parallel_work = 1 << 20;  // multiply-adds below which one thread is enough
constexpr Index parallel_dots = 1 << 18;

using detail::leading_dimension;

CBLAS_TRANSPOSE cblas(Transpose op) { return op == Transpose::yes ? CblasTrans : CblasNoTrans; }

Index parts_of(Index length, Index part) { return (length + part - 1) / part; }

/// One block of the output and one part of the inner sum.
struct Block {
  Index row, rows, column, columns, inner, inners;
};

/// How an m x n output with an inner sum of length k is cut; a function of the shape only.
struct Cut {
  Cut(Index m_, Index n_, Index k_) : m(m_), n(n_), k(k_) {
    tile_rows = n >= 64 ? tile : tall_tile;
    row_tiles = parts_of(m, tile_rows);
    column_tiles = parts_of(n, tile);
    const Index tiles = row_tiles * column_tiles;
    if (tiles > 0 && tiles < enough_tasks)
      parts = std::clamp<Index>(k / inner_part, 1, max_tasks / tiles);
  }
  Index tasks() const { return row_tiles * column_tiles * parts; }
  Block block(Index task) const {
    const Index part = task / (row_tiles * column_tiles);
    const Index t = task % (row_tiles * column_tiles);
    const Index row = (t % row_tiles) * tile_rows;
    const Index column = (t / row_tiles) * tile;
    const Index first = part * k / parts;
    return {row,   std::min(tile_rows, m - row),  column, std::min(tile, n - column),
            first, (part + 1) * k / parts - first};
  }

  Index m, n, k;
  Index tile_rows = tile, row_tiles = 0, column_tiles = 0, parts = 1;
};

/// Room for partial sums, kept by the thread that asks so that a warm call allocates nothing.
double* partial_buffer(Index doubles) {
  thread_local std::vector<double> buffer;
  if (static_cast<Index>(buffer.size()) < doubles) buffer.resize(static_cast<std::size_t>(doubles));
  return buffer.data();
}

// Triangular solves with kernel matrices of short lengthscales are full of subnormal numbers.
void run(Index tasks, bool parallel, const std::function<void(Index, int)>& body) {
  if (parallel) {
    parallel_for(tasks, [&](Index task, int thread) {
      const NoSubnormals flushed;
      body(task, thread);
    });
  } else {
    const NoSubnormals flushed;
    for (Index task = 0; task < tasks; ++task) body(task, 0);
  }
}

/// c = alpha op(a) op(b) + beta c for one block, on this thread.
void block_product(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b,
                   Transpose op_b, const Block& t, double beta, double* c, Index ldc) {
  const Index lda = leading_dimension(a), ldb = leading_dimension(b);
  const double* a0 =
      a.data() + (op_a == Transpose::no ? t.row + t.inner * lda : t.inner + t.row * lda);
  const double* b0 =
      b.data() + (op_b == Transpose::no ? t.inner + t.column * ldb : t.column + t.inner * ldb);
  if (t.columns == 1) {
    const bool plain = op_a == Transpose::no;
    cblas_dgemv(CblasColMajor, cblas(op_a), detail::blas_int(plain ? t.rows : t.inners),
                detail::blas_int(plain ? t.inners : t.rows), alpha, a0, detail::blas_int(lda), b0,
                detail::blas_int(op_b == Transpose::no ? 1 : ldb), beta, c, 1);
    return;
  }
  cblas_dgemm(CblasColMajor, cblas(op_a), cblas(op_b), detail::blas_int(t.rows),
              detail::blas_int(t.columns), detail::blas_int(t.inners), alpha, a0,
              detail::blas_int(lda), b0, detail::blas_int(ldb), beta, c, detail::blas_int(ldc));
}

/// c(block) = beta c(block) + the parts of the block in order.
void add_parts(const Cut& cut, const double* partials, Index stride, double beta, MatrixView c) {
  const Index tiles = cut.row_tiles * cut.column_tiles;
  for (Index t = 0; t < tiles; ++t) {
    const Block block = cut.block(t);
    for (Index j = 0; j < block.columns; ++j)
      for (Index i = 0; i < block.rows; ++i) {
        double sum = 0;
        for (Index part = 0; part < cut.parts; ++part)
          sum += partials[(part * tiles + t) * stride + i + j * block.rows];
        double& out = c(block.row + i, block.column + j);
        out = beta == 0 ? sum : beta * out + sum;
      }
  }
}

void scale(double beta, MatrixView c) {
  if (beta == 0) c.setZero();
  if (beta != 0 && beta != 1) c *= beta;
}

}  // namespace

namespace {

/// Sizes of op(a) op(b), checked against c.
Cut product_cut(const char* name, ConstMatrixView a, Transpose op_a, ConstMatrixView b,
                Transpose op_b, ConstMatrixView c) {
  const Index m = op_a == Transpose::no ? a.rows() : a.cols();
  const Index k = op_a == Transpose::no ? a.cols() : a.rows();
  const Index n = op_b == Transpose::no ? b.cols() : b.rows();
  const Index k_b = op_b == Transpose::no ? b.rows() : b.cols();
  const auto says = [&](const char* what) { return std::string(name) + ": " + what; };
  if (k != k_b) throw DimensionMismatch(says("columns of op(a)"), k, "rows of op(b)", k_b);
  if (c.rows() != m) throw DimensionMismatch(says("rows of c"), c.rows(), "rows of op(a)", m);
  if (c.cols() != n) throw DimensionMismatch(says("columns of c"), c.cols(), "columns of op(b)", n);
  return {m, n, k};
}

/// `lower`: tiles above the diagonal are left out.
void product(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b, Transpose op_b,
             double beta, const Cut& cut, bool lower, MatrixView c) {
  const detail::SerialBlas serial;
  if (cut.m == 0 || cut.n == 0) return;
  if (cut.k == 0) return scale(beta, c);
  const Index ldc = leading_dimension(c);
  const Index stride = std::min(cut.tile_rows, cut.m) * std::min(tile, cut.n);
  double* partials = cut.parts > 1 ? partial_buffer(cut.tasks() * stride) : nullptr;
  const auto body = [&](Index task, int) {
    const Block t = cut.block(task);
    if (lower && t.row + t.rows <= t.column) return;
    if (cut.parts > 1)
      block_product(alpha, a, op_a, b, op_b, t, 0.0, partials + task * stride, t.rows);
    else
      block_product(alpha, a, op_a, b, op_b, t, beta, c.data() + t.row + t.column * ldc, ldc);
  };
  run(cut.tasks(), cut.m * cut.n * cut.k >= parallel_work, std::ref(body));
  if (cut.parts > 1) add_parts(cut, partials, stride, beta, c);
}

void mirror_lower(MatrixView c) {
  for (Index j = 0; j < c.cols(); ++j)
    for (Index i = 0; i < j; ++i) c(i, j) = c(j, i);
}

}  // namespace

void gemm(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b, Transpose op_b,
          double beta, MatrixView c) {
  const auto cut = product_cut("gemm", a, op_a, b, op_b, c);
  product(alpha, a, op_a, b, op_b, beta, cut, false, c);
}

void symmetric_gemm(double alpha, ConstMatrixView a, Transpose op_a, ConstMatrixView b,
                    Transpose op_b, double beta, MatrixView c) {
  const auto cut = product_cut("symmetric_gemm", a, op_a, b, op_b, c);
  if (cut.m != cut.n)
    throw DimensionMismatch("symmetric_gemm: rows of op(a)", cut.m, "columns of op(b)", cut.n);
  product(alpha, a, op_a, b, op_b, beta, cut, true, c);
  mirror_lower(c);
}

void gram(double alpha, ConstMatrixView a, double beta, MatrixView c) {
  symmetric_gemm(alpha, a, Transpose::yes, a, Transpose::no, beta, c);
}

namespace {

void solve_diagonal_block(ConstMatrixView l, Transpose op, Index k, Index nb, MatrixView b) {
  const Index ld = leading_dimension(l), ldb = leading_dimension(b);
  const auto body = [&](Index panel, int) {
    const Index column = panel * tile;
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, cblas(op), CblasNonUnit, detail::blas_int(nb),
                detail::blas_int(std::min(tile, b.cols() - column)), 1.0, l.data() + k + k * ld,
                detail::blas_int(ld), b.data() + k + column * ldb, detail::blas_int(ldb));
  };
  run(parts_of(b.cols(), tile), b.cols() > tile, std::ref(body));
}

}  // namespace

void solve_lower(ConstMatrixView l, Transpose op, MatrixView b) {
  const detail::SerialBlas serial;
  const Index n = l.rows();
  if (l.cols() != n) throw DimensionMismatch("solve_lower: columns of l", l.cols(), "rows of l", n);
  if (b.rows() != n) throw DimensionMismatch("solve_lower: rows of b", b.rows(), "rows of l", n);
  if (n == 0 || b.cols() == 0) return;

  // Blocks of rows in turn: solve with the diagonal block, then take it out of the rows to come.
  const Index blocks = parts_of(n, tile);
  for (Index step = 0; step < blocks; ++step) {
    const Index k = (op == Transpose::no ? step : blocks - 1 - step) * tile;
    const Index nb = std::min(tile, n - k);
    solve_diagonal_block(l, op, k, nb, b);
    const auto solved = b.middleRows(k, nb);
    if (op == Transpose::no && k + nb < n)
      gemm(-1.0, l.block(k + nb, k, n - k - nb, nb), Transpose::no, solved, Transpose::no, 1.0,
           b.bottomRows(n - k - nb));
    if (op == Transpose::yes && k > 0)
      gemm(-1.0, l.block(k, 0, nb, k), Transpose::yes, solved, Transpose::no, 1.0, b.topRows(k));
  }
}

void solve_lower_right(ConstMatrixView l, Transpose op, MatrixView b) {
  const detail::SerialBlas serial;
  const Index n = l.rows();
  if (l.cols() != n)
    throw DimensionMismatch("solve_lower_right: columns of l", l.cols(), "rows of l", n);
  if (b.cols() != n)
    throw DimensionMismatch("solve_lower_right: columns of b", b.cols(), "rows of l", n);
  if (n == 0 || b.rows() == 0) return;
  const Index ld = leading_dimension(l), ldb = leading_dimension(b);
  const auto body = [&](Index panel, int) {
    const Index row = panel * tile;
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, cblas(op), CblasNonUnit,
                detail::blas_int(std::min(tile, b.rows() - row)), detail::blas_int(n), 1.0,
                l.data(), detail::blas_int(ld), b.data() + row, detail::blas_int(ldb));
  };
  run(parts_of(b.rows(), tile), b.rows() * n * n >= parallel_work, std::ref(body));
}

void multiply_lower(ConstMatrixView l, MatrixView b) {
  const detail::SerialBlas serial;
  const Index n = l.rows();
  if (l.cols() != n)
    throw DimensionMismatch("multiply_lower: columns of l", l.cols(), "rows of l", n);
  if (b.rows() != n) throw DimensionMismatch("multiply_lower: rows of b", b.rows(), "rows of l", n);
  if (n == 0 || b.cols() == 0) return;

  // From the last block of rows up, so that the rows above are still those of the argument.
  const Index ld = leading_dimension(l), ldb = leading_dimension(b);
  for (Index k = (n - 1) / tile * tile; k >= 0; k -= tile) {
    const Index nb = std::min(tile, n - k);
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,
                detail::blas_int(nb), detail::blas_int(b.cols()), 1.0, l.data() + k + k * ld,
                detail::blas_int(ld), b.data() + k, detail::blas_int(ldb));
    if (k > 0)
      gemm(1.0, l.block(k, 0, nb, k), Transpose::no, b.topRows(k), Transpose::no, 1.0,
           b.middleRows(k, nb));
  }
}

void column_dots(ConstMatrixView x, ConstMatrixView y, std::span<double> out) {
  const detail::SerialBlas serial;
  const Index n = x.rows(), t = x.cols();
  if (y.rows() != n) throw DimensionMismatch("column_dots: rows of y", y.rows(), "rows of x", n);
  if (y.cols() != t)
    throw DimensionMismatch("column_dots: columns of y", y.cols(), "columns of x", t);
  if (static_cast<Index>(out.size()) != t)
    throw DimensionMismatch("column_dots: length of out", static_cast<Index>(out.size()),
                            "columns of x", t);
  const Index chunks = parts_of(n, dot_chunk);
  double* partials = partial_buffer(chunks * t);
  const auto body = [&](Index task, int) {
    const Index j = task / chunks, first = (task % chunks) * dot_chunk;
    partials[task] = cblas_ddot(detail::blas_int(std::min(dot_chunk, n - first)),
                                x.data() + first + j * leading_dimension(x), 1,
                                y.data() + first + j * leading_dimension(y), 1);
  };
  run(chunks * t, n * t >= parallel_dots, std::ref(body));
  for (Index j = 0; j < t; ++j) {
    double sum = 0;
    for (Index chunk = 0; chunk < chunks; ++chunk) sum += partials[j * chunks + chunk];
    out[static_cast<std::size_t>(j)] = sum;
  }
}

SymmetricEigen symmetric_eigen(ConstMatrixView a) {
  const detail::SerialBlas serial;
  const Index n = a.rows();
  if (a.cols() != n)
    throw DimensionMismatch("symmetric_eigen: columns of a", a.cols(), "rows of a", n);
  if (!a.allFinite())
    throw InvalidArgument("symmetric_eigen: the matrix has a value that is not finite");
  SymmetricEigen result{Vector(n), a};
  if (n == 0) return result;

  const int order = detail::blas_int(n), query = -1;
  int info = 0, integers_needed = 0;
  double doubles_needed = 0;
  dsyevd_("V", "L", &order, result.vectors.data(), &order, result.values.data(), &doubles_needed,
          &query, &integers_needed, &query, &info);
  const int doubles = static_cast<int>(doubles_needed);
  std::vector<double> work(static_cast<std::size_t>(doubles));
  std::vector<int> integers(static_cast<std::size_t>(integers_needed));
  dsyevd_("V", "L", &order, result.vectors.data(), &order, result.values.data(), work.data(),
          &doubles, integers.data(), &integers_needed, &info);
  if (info != 0) throw Error("symmetric_eigen: LAPACK dsyevd did not converge");
  return result;
}

}  // namespace mercer::linalg
