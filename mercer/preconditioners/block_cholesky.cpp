#include "mercer/preconditioners/block_cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {
namespace {

using linalg::Transpose;

// With fewer blocks than this they go one after the other, each in parallel within itself.
constexpr Index enough_blocks = 4;
constexpr double most_jitter = 0.01;  // of the largest diagonal entry

template <class Body>
void run(Index blocks, const Body& body) {
  if (blocks < enough_blocks) {
    for (Index b = 0; b < blocks; ++b) body(b, 0);
  } else {
    parallel_for(blocks, std::ref(body));
  }
}

/// The factor, and the jitter that it took.
std::pair<Matrix, double> factor(std::span<const Index> points, const BlockCholesky::Fill& fill) {
  const auto m = static_cast<Index>(points.size());
  double jitter = 0;
  for (;;) {
    Matrix a(m, m);
    fill(points, a);
    const double largest = m == 0 ? 0.0 : a.diagonal().cwiseAbs().maxCoeff();
    a.diagonal().array() += jitter;
    try {
      const linalg::Cholesky cholesky(std::move(a));
      return {cholesky.factor(), jitter};
    } catch (const NotPositiveDefinite&) {
      const double rounding =
          static_cast<double>(m) * std::numeric_limits<double>::epsilon() * largest;
      jitter = jitter == 0 ? rounding : 10 * jitter;
      if (!(jitter <= most_jitter * largest)) throw;
    }
  }
}

/// m x t scratch of the calling thread, so that a warm solve allocates nothing.
MatrixView scratch(Index rows, Index columns) {
  thread_local std::vector<double> buffer;
  const auto needed = static_cast<std::size_t>(rows * columns);
  if (buffer.size() < needed) buffer.resize(needed);
  return Eigen::Map<Matrix>(buffer.data(), rows, columns);
}

}  // namespace

Index default_blocks(Index n) {
  const double size = std::clamp(4 * std::sqrt(static_cast<double>(n)), 100.0, 500.0);
  return std::max<Index>(1, static_cast<Index>(std::ceil(static_cast<double>(n) / size)));
}

std::string blocks_note(Index n, const PreconditionerOptions& options) {
  if (!options.blocks || *options.blocks <= n) return "";
  return fmt::format("{} blocks cut to the number of points {}; ", *options.blocks, n);
}

void fill_kernel_block(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                       std::span<const Index> points, MatrixView block) {
  Matrix x(block.rows(), k.points().cols());
  for (Index i = 0; i < x.rows(); ++i)
    x.row(i) = k.points().row(points[static_cast<std::size_t>(i)]);
  operators::dense_matrix(k.kernel(), x, block);
  block.diagonal() += noise.rows(points).vector(block.rows());
}

Cost block_cost(Index n, Index d, const PreconditionerOptions& options) {
  const Index blocks = options.blocks.value_or(default_blocks(n));
  const double bytes = BlockCholesky::bytes(n, blocks);
  const auto points = static_cast<double>(n);
  return {.bytes = bytes,
          // Besides the factors, the block under work twice on each of a few threads.
          .peak_bytes = bytes + 8 * bytes / static_cast<double>(std::max<Index>(blocks, 4)),
          .kernel_values = bytes / 8,
          .build_flops = BlockCholesky::build_flops(n, blocks) +
                         points * static_cast<double>(d) * std::log2(points + 1),
          .apply_flops = BlockCholesky::apply_flops(n, blocks)};
}

BlockCholesky::BlockCholesky(approximations::Clusters clusters, const Fill& fill)
    : clusters_(std::move(clusters)),
      factors_(static_cast<std::size_t>(clusters_.count())),
      jitter_(factors_.size()) {
  run(clusters_.count(), [&](Index b, int) {
    const auto at = static_cast<std::size_t>(b);
    std::tie(factors_[at], jitter_[at]) = factor(clusters_.block(b), fill);
  });
}

double BlockCholesky::log_det() const {
  double sum = 0;
  for (const Matrix& l : factors_)
    for (Index i = 0; i < l.rows(); ++i) sum += std::log(l(i, i));
  return 2 * sum;
}

double BlockCholesky::entries() const {
  double sum = 0;
  for (const Matrix& l : factors_) sum += static_cast<double>(l.size());
  return sum;
}

template <class Apply>
void BlockCholesky::for_blocks(MatrixView b, const Apply& apply) const {
  if (b.rows() != size())
    throw DimensionMismatch("block Cholesky: rows of b", b.rows(), "size", size());
  run(clusters_.count(), [&](Index block, int) {
    const auto points = clusters_.block(block);
    const auto m = static_cast<Index>(points.size());
    MatrixView part = scratch(m, b.cols());
    for (Index j = 0; j < b.cols(); ++j)
      for (Index i = 0; i < m; ++i) part(i, j) = b(points[static_cast<std::size_t>(i)], j);
    apply(factors_[static_cast<std::size_t>(block)], part);
    for (Index j = 0; j < b.cols(); ++j)
      for (Index i = 0; i < m; ++i) b(points[static_cast<std::size_t>(i)], j) = part(i, j);
  });
}

void BlockCholesky::solve_in_place(MatrixView b) const {
  for_blocks(b, [](const Matrix& l, MatrixView part) {
    linalg::solve_lower(l, Transpose::no, part);
    linalg::solve_lower(l, Transpose::yes, part);
  });
}

void BlockCholesky::solve_lower_in_place(MatrixView b) const {
  for_blocks(b,
             [](const Matrix& l, MatrixView part) { linalg::solve_lower(l, Transpose::no, part); });
}

void BlockCholesky::solve_upper_in_place(MatrixView b) const {
  for_blocks(
      b, [](const Matrix& l, MatrixView part) { linalg::solve_lower(l, Transpose::yes, part); });
}

void BlockCholesky::multiply_lower_in_place(MatrixView b) const {
  for_blocks(b, [](const Matrix& l, MatrixView part) { linalg::multiply_lower(l, part); });
}

std::string BlockCholesky::jitter_note() const {
  const auto count = std::count_if(jitter_.begin(), jitter_.end(), [](double j) { return j > 0; });
  if (count == 0) return "";
  return fmt::format(
      "{} of {} blocks were singular to rounding and got up to {:.1e} on the diagonal; ", count,
      jitter_.size(), *std::max_element(jitter_.begin(), jitter_.end()));
}

double BlockCholesky::bytes(Index n, Index blocks) {
  const auto count = static_cast<double>(std::clamp<Index>(n, 1, blocks));
  const double m = std::ceil(static_cast<double>(n) / count);
  return 8 * count * m * m + 8 * static_cast<double>(n) + 24 * count;
}

double BlockCholesky::build_flops(Index n, Index blocks) {
  const auto count = static_cast<double>(std::clamp<Index>(n, 1, blocks));
  return static_cast<double>(n) * std::pow(static_cast<double>(n) / count, 2) / 3;
}

double BlockCholesky::apply_flops(Index n, Index blocks) {
  const auto count = static_cast<double>(std::clamp<Index>(n, 1, blocks));
  return 2 * static_cast<double>(n) * static_cast<double>(n) / count;
}

}  // namespace mercer::preconditioners
