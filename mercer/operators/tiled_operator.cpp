#include "mercer/operators/tiled_operator.hpp"

#include <algorithm>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/core/planned_threads.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/gradient.hpp"
#include "mercer/operators/detail/matrix.hpp"
#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/detail/product.hpp"
#include "mercer/operators/detail/shapes.hpp"

namespace mercer::operators {
namespace {

// Rows of the left point set are independent tasks: enough of them, each with enough to do.
Index cross_block(Index rows) { return rows >= 2048 ? 256 : 64; }

// Rows of `a` handled at a time, so that memory does not grow with their number.
constexpr Index kStreamedRows = 8192;

void check_square(std::string_view what, const ConstMatrixView& m, const ConstMatrixView& x) {
  if (m.rows() != x.rows() || m.cols() != x.rows())
    throw DimensionMismatch(std::string(what), m.rows() * m.cols(), "points squared",
                            x.rows() * x.rows());
}

}  // namespace

struct TiledOperator::Impl {
  Impl(kernels::Kernel k, Matrix x, Precision p)
      : kernel(std::move(k)),
        points(std::move(x)),
        precision(p),
        program(kernel),
        sorted(program, points, {.precision = p}) {}
  kernels::Kernel kernel;
  Matrix points;
  Precision precision;
  detail::Program program;
  detail::PointSet sorted;
};

TiledOperator::TiledOperator(kernels::Kernel kernel, Matrix points, Precision precision)
    : impl_(std::make_unique<Impl>(std::move(kernel), std::move(points), precision)) {}
TiledOperator::~TiledOperator() = default;

const kernels::Kernel& TiledOperator::kernel() const { return impl_->kernel; }
const Matrix& TiledOperator::points() const { return impl_->points; }
Precision TiledOperator::precision() const { return impl_->precision; }

void TiledOperator::apply(ConstMatrixView x, MatrixView y) const {
  detail::check_product("tiled product", size(), x, y);
  detail::symmetric_product(impl_->program, impl_->sorted, impl_->precision, x, y);
  count_products(x.cols());
}

void TiledOperator::columns(std::span<const Index> which, MatrixView out) const {
  detail::matrix_columns(impl_->program, impl_->points, impl_->sorted, which, out);
}

void TiledOperator::apply_with_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                        VectorView gradient) const {
  detail::check_product_with_gradient("tiled product with gradient", size(), u, v, kv);
  detail::product_with_gradient(impl_->program, impl_->sorted, Precision::float64, u, v, kv,
                                gradient);
  count_products(v.cols());
}

void TiledOperator::apply_with_quick_gradient(ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                                              VectorView gradient) const {
  detail::check_product_with_gradient("tiled product with gradient", size(), u, v, kv);
  detail::product_with_gradient(impl_->program, impl_->sorted, impl_->precision, u, v, kv,
                                gradient);
  count_products(v.cols());
}

double tiled_bytes(Index n, Index d, Index columns) {
  const auto points = static_cast<double>(n + detail::kTile);
  const auto inputs = static_cast<double>(d);
  const auto stored = static_cast<double>(detail::stored_columns(detail::plan_chunks(columns)));
  // Per point: inputs twice, position and vectors (in, out); boxes of tiles are small.
  const double shared = points * (16 * inputs + 8 + 16 * stored + 16 * inputs / detail::kTile);
  // Per thread: a block of rows and a panel of columns of every feature, strips, partial sums.
  const double per_thread = (2.0 * 1024 + 512) * inputs * 8 + 512 * 64.0 * 8 + 512 * stored * 8;
  return shared + kPlannedThreads * per_thread;
}

OperatorInfo tiled_info() {
  return {.name = "tiled",
          .summary = "entries of K are evaluated again for every product: O(N d) memory",
          .make = [](const kernels::Kernel& kernel, const Matrix& x,
                     Precision precision) -> std::unique_ptr<KernelOperator> {
            return std::make_unique<TiledOperator>(kernel, x, precision);
          },
          .bytes = [](Index n, Index d, Index columns,
                      Precision) { return tiled_bytes(n, d, columns); },
          .product_seconds =
              [](const Speeds& speeds, Index n, Index columns, Precision precision) {
                const double pairs = static_cast<double>(n) * static_cast<double>(n);
                return pairs *
                       (speeds.pair_seconds(precision) +
                        static_cast<double>(columns - 1) * speeds.column_seconds(precision));
              },
          .build_seconds = [](const Speeds&, Index, Precision) { return 0.0; }};
}

void cross_apply(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView x,
                 ConstMatrixView v, Precision precision, MatrixView out) {
  if (v.rows() != x.rows())
    throw DimensionMismatch("cross product: rows of v", v.rows(), "rows of x", x.rows());
  if (out.rows() != a.rows())
    throw DimensionMismatch("cross product: rows of out", out.rows(), "rows of a", a.rows());
  if (out.cols() != v.cols())
    throw DimensionMismatch("cross product: columns of out", out.cols(), "columns of v", v.cols());
  const detail::Program program(kernel);
  const detail::PointSet columns(
      program, x, {.precision = precision, .sort = a.rows() >= 1024, .grouped = false});
  for (Index first = 0; first < a.rows(); first += kStreamedRows) {
    const Index count = std::min(kStreamedRows, a.rows() - first);
    const detail::PointSet rows(program, a.middleRows(first, count),
                                {.precision = precision,
                                 .align = simd::kPackedRows,
                                 .block = cross_block(a.rows()),
                                 .wide = columns.huge_factors(),
                                 .origin = x.rows() > 0 ? x.data() : nullptr,
                                 .origin_stride = x.outerStride()});
    detail::cross_product(program, rows, columns, precision, v, out.middleRows(first, count));
  }
}

void cross_matrix(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                  MatrixView out) {
  if (out.rows() != a.rows() || out.cols() != b.rows())
    throw DimensionMismatch("cross matrix: size of out", out.rows() * out.cols(),
                            "rows of a times rows of b", a.rows() * b.rows());
  detail::dense_cross(detail::Program(kernel), a, b, out);
}

void dense_matrix(const kernels::Kernel& kernel, ConstMatrixView x, MatrixView out) {
  check_square("dense matrix: size of out", out, x);
  detail::dense_symmetric(detail::Program(kernel), x, out);
}

void lower_matrix(const kernels::Kernel& kernel, ConstMatrixView x, MatrixView out) {
  check_square("lower matrix: size of out", out, x);
  detail::dense_lower(detail::Program(kernel), x, out);
}

void weighted_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstMatrixView s,
                       VectorView gradient) {
  check_square("weighted gradient: size of s", s, x);
  detail::weighted_gradient(detail::Program(kernel), x, s, gradient);
}

void weighted_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstVectorView w,
                       ConstMatrixView s, VectorView gradient) {
  check_square("weighted gradient: size of s", s, x);
  if (w.size() != x.rows())
    throw DimensionMismatch("weighted gradient: length of w", w.size(), "points", x.rows());
  detail::weighted_gradient(detail::Program(kernel), x, w, s, gradient);
}

const char* simd_target() { return simd::target_name(); }

}  // namespace mercer::operators
