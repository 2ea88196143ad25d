#include "mercer/operators/detail/matrix.hpp"

#include <algorithm>
#include <memory>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/schedule.hpp"
#include "mercer/operators/detail/strip_evaluator.hpp"

namespace mercer::operators::detail {
namespace {

constexpr Index kPanel = kMatrixPanel;
constexpr Index kRows = kMatrixRows;

// One evaluator per thread, made when first used.
class Evaluators {
 public:
  explicit Evaluators(const Program& program, Index max_rows)
      : program_(program), max_rows_(max_rows), workers_(static_cast<std::size_t>(num_threads())) {}
  StripEvaluator<double>& operator[](int worker) {
    auto& slot = workers_[static_cast<std::size_t>(worker)];
    if (!slot)
      slot =
          std::make_unique<StripEvaluator<double>>(program_, StripShape{max_rows_, kPanel, kRows});
    return *slot;
  }

 private:
  const Program& program_;
  Index max_rows_;
  std::vector<std::unique_ptr<StripEvaluator<double>>> workers_;
};

}  // namespace

void matrix_columns(const Program& program, const Matrix& x, const PointSet& sorted,
                    std::span<const Index> which, MatrixView out) {
  const auto count = static_cast<Index>(which.size());
  if (out.rows() != sorted.size() || out.cols() != count)
    throw DimensionMismatch("kernel columns: size of out", out.size(),
                            "points times columns asked for", sorted.size() * count);
  if (count == 0) return;
  Matrix chosen(count, x.cols());
  for (Index k = 0; k < count; ++k) {
    const Index i = which[static_cast<std::size_t>(k)];
    if (i < 0 || i >= x.rows())
      throw DimensionMismatch("kernel columns: index", i, "number of points", x.rows());
    chosen.row(k) = x.row(i);
  }
  // Each column is a group of its own: seen from its own point, distances are exact.
  const PointSet rows(program, chosen,
                      {.sort = false,
                       .align = 1,
                       .tile = 1,
                       .block = 1,
                       .origin = x.data(),
                       .origin_stride = x.outerStride()});
  Evaluators evaluators(program, 1);
  const auto& order = sorted.order();
  const Index panels = (sorted.padded() + kPanel - 1) / kPanel;
  parallel_for(panels, [&](Index p, int worker) {
    auto& evaluator = evaluators[worker];
    const Index begin = p * kPanel;
    const Index end = std::min(begin + kPanel, sorted.padded());
    for (Index k = 0; k < count; ++k) {
      const auto& block = rows.blocks()[static_cast<std::size_t>(k)];
      evaluator.set_rows(rows, block.groups[0], k, k + 1);
      evaluator.set_columns(sorted, begin, end);
      const double* strip = evaluator.evaluate(0, 1);
      for (Index j = begin; j < std::min(end, sorted.size()); ++j)
        out(order[static_cast<std::size_t>(j)], k) = program.outer_factor * strip[j - begin];
    }
  });
}

void dense_cross(const Program& program, ConstMatrixView a, ConstMatrixView b, MatrixView out) {
  if (a.rows() == 0 || b.rows() == 0) return;
  // Strips run along a, so that columns of out are written whole; unless a is very short.
  const bool along_a = a.rows() >= kTile / 2 || a.rows() >= b.rows();
  const ConstMatrixView& row_points = along_a ? b : a;
  const ConstMatrixView& column_points = along_a ? a : b;
  const PointSet columns(program, column_points, {.sort = false, .grouped = false});
  const PointSet rows(program, row_points,
                      {.sort = false,
                       .align = simd::kPackedRows,
                       .block = kTile,
                       .origin = column_points.data(),
                       .origin_stride = column_points.outerStride()});
  Evaluators evaluators(program, kTile);
  parallel_for(static_cast<Index>(rows.blocks().size()), [&](Index index, int worker) {
    auto& evaluator = evaluators[worker];
    for (const auto& group : rows.blocks()[static_cast<std::size_t>(index)].groups) {
      evaluator.set_rows(rows, group, group.begin, group.end);
      for (Index c = 0; c < columns.padded(); c += kPanel) {
        const Index c_end = std::min(c + kPanel, columns.padded());
        stop_if_requested("evaluating the kernel");
        evaluator.set_columns(columns, c, c_end);
        for (Index row = group.begin; row < group.end; row += kRows) {
          const Index count = std::min(kRows, group.end - row);
          const double* strip = evaluator.evaluate(row - group.begin, count);
          for (Index r = row; r < std::min(row + count, rows.size()); ++r)
            for (Index j = c; j < std::min(c_end, columns.size()); ++j)
              (along_a ? out(j, r) : out(r, j)) =
                  program.outer_factor * strip[(r - row) * (c_end - c) + j - c];
        }
      }
    }
  });
}

namespace {

// Rows row .. row + kRows of a strip that begins at column c, into columns of the lower triangle;
// with `mirror` into rows of the upper one as well.
struct StripWriter {
  double factor;
  Index n;
  MatrixView& out;
  bool mirror;

  void operator()(const Unit& unit, const double* strip, Index row, Index c, Index c_end) const {
    const Index row_end = std::min({row + kRows, unit.row_end, n});
    const Index stride = c_end - c, last = std::min(c_end, n);
    for (Index r = row; r < row_end; ++r) {
      // Inside a tile on the diagonal only the part right of it is used.
      const Index first = unit.symmetric ? c : std::max(c, r);
      const double* from = strip + (r - row) * stride;
      double* to = out.data() + r * out.outerStride();
      for (Index j = first; j < last; ++j) to[j] = factor * from[j - c];
    }
    if (!mirror) return;
    for (Index j = c; j < last; ++j)
      for (Index r = row; r < (unit.symmetric ? row_end : std::min(row_end, j)); ++r)
        out(r, j) = factor * strip[(r - row) * stride + j - c];
  }
};

// What blocks i and j of the points have to do with each other.
void write_pair(const PointSet& points, Index i, Index j, StripEvaluator<double>& evaluator,
                const StripWriter& write_strip) {
  for_each_unit(points, i, j, [&](const Unit& unit) {
    evaluator.set_rows(points, *unit.group, unit.row_begin, unit.row_end);
    for (Index c = unit.column_begin; c < unit.column_end; c += kPanel) {
      const Index c_end = std::min(c + kPanel, unit.column_end);
      evaluator.set_columns(points, c, c_end);
      for (Index row = unit.row_begin; row < unit.row_end; row += kRows)
        write_strip(unit, evaluator.evaluate(row - unit.row_begin, kRows), row, c, c_end);
    }
  });
}

void write_dense(const Program& program, ConstMatrixView x, MatrixView out, bool mirror) {
  const PointSet points(program, x, {.sort = false});
  Evaluators evaluators(program, 1024);
  const StripWriter write_strip{program.outer_factor, points.size(), out, mirror};
  tournament(static_cast<Index>(points.blocks().size()), [&](Index i, Index j, Index, int worker) {
    write_pair(points, i, j, evaluators[worker], write_strip);
  });
}

}  // namespace

void dense_symmetric(const Program& program, ConstMatrixView x, MatrixView out) {
  write_dense(program, x, out, /*mirror=*/true);
}

void dense_symmetric(const Program& program, const PointSet& points,
                     StripEvaluator<double>& evaluator, MatrixView out) {
  const StripWriter write_strip{program.outer_factor, points.size(), out, /*mirror=*/true};
  const auto blocks = static_cast<Index>(points.blocks().size());
  for (Index i = 0; i < blocks; ++i)
    for (Index j = i; j < blocks; ++j) write_pair(points, i, j, evaluator, write_strip);
}

void dense_lower(const Program& program, ConstMatrixView x, MatrixView out) {
  write_dense(program, x, out, /*mirror=*/false);
}

}  // namespace mercer::operators::detail
