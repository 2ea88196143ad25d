#include "mercer/operators/stored_operator.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/gradient.hpp"
#include "mercer/operators/detail/matrix.hpp"
#include "mercer/operators/detail/product.hpp"
#include "mercer/operators/detail/shapes.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::operators {
namespace {

using detail::Buffer;
using detail::StripEvaluator;
using detail::StripMultiplier;
using detail::Unit;

constexpr Index kPanel = 256;
constexpr Index kRows = 8;

// Strips of T in the order in which products read them: block pair, unit, panel, strip.
template <class T>
class Tiles {
 public:
  Tiles(const detail::Program& program, const detail::PointSet& points) : points_(points) {
    const auto blocks = static_cast<Index>(points.blocks().size());
    Index total = 0;
    offsets_.resize(static_cast<std::size_t>(blocks * blocks));
    for (Index i = 0; i < blocks; ++i)
      for (Index j = i; j < blocks; ++j) {
        offsets_[static_cast<std::size_t>(i * blocks + j)] = total;
        detail::for_each_unit(points, i, j, [&](const Unit& unit) {
          total += (unit.row_end - unit.row_begin) * (unit.column_end - unit.column_begin);
        });
      }
    values_ = Buffer<T>(std::max<Index>(1, total));
    fill(program);
  }

  void apply(ConstMatrixView v, double factor, MatrixView y) const {
    const auto chunks = detail::plan_chunks(v.cols());
    const Index padded = points_.padded();
    const auto scales = sizeof(T) == 4
                            ? detail::column_scales(v)
                            : std::vector<double>(static_cast<std::size_t>(v.cols()), 1.0);
    const auto packed = detail::pack_vectors<T>(points_, chunks, v, scales);
    Buffer<double> sums(detail::stored_columns(chunks) * padded);
    std::fill(sums.data(), sums.data() + detail::stored_columns(chunks) * padded, 0.0);
    std::vector<std::unique_ptr<StripMultiplier<T>>> workers(
        static_cast<std::size_t>(num_threads()));
    for_each_strip([&](const Unit& unit, Index row, Index c, Index c_end, T* strip, int worker) {
      auto& m = workers[static_cast<std::size_t>(worker)];
      if (!m) {
        m = std::make_unique<StripMultiplier<T>>(chunks, kPanel);
        m->v_rows = m->v_columns = packed.data();
        m->rows_padded = m->columns_padded = padded;
        m->y_rows = m->y_columns = sums.data();
      }
      m->set_columns(c, c_end - c);
      m->multiply(strip, row, kRows, unit.symmetric);
      const Index done = row + kRows;
      if (unit.symmetric &&
          ((done - unit.row_begin) % detail::kFlushRows == 0 || done == unit.row_end))
        m->flush();
    });
    detail::unpack_vectors(points_, chunks, sums.data(), factor, scales, y);
  }

 private:
  // visit(unit, row, c, c_end, strip, worker) for every strip, block pairs in parallel.
  template <class Visit>
  void for_each_strip(Visit&& visit) const {
    const auto blocks = static_cast<Index>(points_.blocks().size());
    detail::tournament(blocks, [&](Index i, Index j, Index, int worker) {
      T* cursor = values_.data() + offsets_[static_cast<std::size_t>(i * blocks + j)];
      detail::for_each_unit(points_, i, j, [&](const Unit& unit) {
        for (Index c = unit.column_begin; c < unit.column_end; c += kPanel) {
          const Index c_end = std::min(c + kPanel, unit.column_end);
          for (Index row = unit.row_begin; row < unit.row_end; row += kRows) {
            visit(unit, row, c, c_end, cursor, worker);
            cursor += kRows * (c_end - c);
          }
        }
      });
    });
  }

  void fill(const detail::Program& program) {
    Index largest = 0;
    for (const auto& block : points_.blocks()) largest = std::max(largest, block.end - block.begin);
    Fill<T> own(program, points_, largest);
    Fill<double> wide(program, points_, largest);
    for_each_strip([&](const Unit& unit, Index row, Index c, Index c_end, T* strip, int worker) {
      if (sizeof(T) == 4 && unit.group->wide) {
        wide.write(unit, row, c, c_end, strip, worker);
      } else {
        own.write(unit, row, c, c_end, strip, worker);
      }
    });
  }

  // Evaluates strips in arithmetic A and rounds them to T.
  template <class A>
  struct Fill {
    Fill(const detail::Program& p, const detail::PointSet& s, Index rows)
        : program(p),
          points(s),
          shape{rows, kPanel, kRows},
          workers(static_cast<std::size_t>(num_threads())) {}
    void write(const Unit& unit, Index row, Index c, Index c_end, T* strip, int worker) {
      auto& evaluator = workers[static_cast<std::size_t>(worker)];
      if (!evaluator) evaluator = std::make_unique<StripEvaluator<A>>(program, shape);
      if (row == unit.row_begin) {
        evaluator->set_rows(points, *unit.group, unit.row_begin, unit.row_end);
        evaluator->set_columns(points, c, c_end);
      }
      const A* values = evaluator->evaluate(row - unit.row_begin, kRows);
      for (Index k = 0; k < kRows * (c_end - c); ++k) strip[k] = static_cast<T>(values[k]);
    }
    const detail::Program& program;
    const detail::PointSet& points;
    detail::StripShape shape;
    std::vector<std::unique_ptr<StripEvaluator<A>>> workers;
  };

  const detail::PointSet& points_;
  std::vector<Index> offsets_;
  Buffer<T> values_;
};

}  // namespace

struct StoredOperator::Impl {
  Impl(kernels::Kernel k, Matrix x, Precision p)
      : kernel(std::move(k)),
        points(std::move(x)),
        precision(p),
        program(kernel),
        sorted(program, points, {.precision = p}) {
    if (p == Precision::float32) {
      narrow = std::make_unique<Tiles<float>>(program, sorted);
    } else {
      wide = std::make_unique<Tiles<double>>(program, sorted);
    }
  }
  kernels::Kernel kernel;
  Matrix points;
  Precision precision;
  detail::Program program;
  detail::PointSet sorted;
  std::unique_ptr<Tiles<float>> narrow;
  std::unique_ptr<Tiles<double>> wide;
};

StoredOperator::StoredOperator(kernels::Kernel kernel, Matrix points, Precision precision)
    : impl_(std::make_unique<Impl>(std::move(kernel), std::move(points), precision)) {}
StoredOperator::~StoredOperator() = default;

const kernels::Kernel& StoredOperator::kernel() const { return impl_->kernel; }
const Matrix& StoredOperator::points() const { return impl_->points; }
Precision StoredOperator::precision() const { return impl_->precision; }

void StoredOperator::apply(ConstMatrixView x, MatrixView y) const {
  detail::check_product("stored product", size(), x, y);
  count_products(x.cols());
  if (x.cols() == 0 || size() == 0) return;
  const double factor = impl_->program.outer_factor;
  if (impl_->narrow) return impl_->narrow->apply(x, factor, y);
  impl_->wide->apply(x, factor, y);
}

void StoredOperator::columns(std::span<const Index> which, MatrixView out) const {
  detail::matrix_columns(impl_->program, impl_->points, impl_->sorted, which, out);
}

void StoredOperator::apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                         VectorView gradient) const {
  detail::check_product_with_gradient("stored product with gradient", size(), u, v, kv);
  detail::product_with_gradient(impl_->program, impl_->sorted, Precision::float64, u, v, kv,
                                gradient);
  count_products(v.cols());
}

void StoredOperator::apply_with_quick_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                               VectorView gradient) const {
  detail::check_product_with_gradient("stored product with gradient", size(), u, v, kv);
  detail::product_with_gradient(impl_->program, impl_->sorted, impl_->precision, u, v, kv,
                                gradient);
  count_products(v.cols());
}

double StoredOperator::bytes(Index n, Precision precision) {
  // Half of the square, and the other half of the tiles on the diagonal.
  const Index tiles = (n + detail::kTile - 1) / detail::kTile;
  const auto padded = static_cast<double>(tiles * detail::kTile);
  const double entries = padded * (padded + static_cast<double>(detail::kTile)) / 2;
  return entries * (precision == Precision::float32 ? 4.0 : 8.0);
}

OperatorInfo stored_info() {
  return {.name = "stored",
          .summary = "K is kept in memory: 4 N^2 bytes, or 2 N^2 with float32 products",
          .make = [](const kernels::Kernel& kernel, const Matrix& x,
                     Precision precision) -> std::unique_ptr<KernelOperator> {
            return std::make_unique<StoredOperator>(kernel, x, precision);
          },
          .bytes =
              [](Index n, Index d, Index columns, Precision precision) {
                return tiled_bytes(n, d, columns) + StoredOperator::bytes(n, precision);
              },
          .product_seconds =
              [](const Speeds& speeds, Index n, Index columns, Precision precision) {
                const double pairs = static_cast<double>(n) * static_cast<double>(n);
                // One triangle is read, and serves both.
                const double read =
                    (precision == Precision::float32 ? 2.0 : 4.0) / speeds.bandwidth;
                return pairs *
                       (read + static_cast<double>(columns - 1) * speeds.column_seconds(precision));
              },
          .build_seconds =
              [](const Speeds& speeds, Index n, Precision) {
                return 0.5 * static_cast<double>(n) * static_cast<double>(n) *
                       speeds.pair_seconds_double;
              },
          // It must be estimated to save a third of the time, for at most 1 GiB.
          .automatic = {.least_gain = 1.5, .most_bytes = 1073741824.0},
          .keeps_matrix = true};
}

}  // namespace mercer::operators
