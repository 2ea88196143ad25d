#include "mercer/approximations/rpcholesky.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::approximations {
namespace {

using linalg::gemm;
using linalg::Transpose;

constexpr Index sampled_chunk = 4096;
constexpr Index smallest_block = 8;

Matrix gather_rows(ConstMatrixView a, const std::vector<Index>& which) {
  Matrix rows(static_cast<Index>(which.size()), a.cols());
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < rows.rows(); ++i) rows(i, j) = a(which[static_cast<std::size_t>(i)], j);
  return rows;
}

}  // namespace

RpCholesky::RpCholesky(const operators::KernelOperator& k, const RpCholeskyOptions& options)
    : k_(k), options_(options), rng_(options.seed, "rpcholesky"), block_(options.block) {
  validate(options);
  const Index n = k.size();
  if (options.weights.size() != 0 && options.weights.size() != n)
    throw DimensionMismatch("rpcholesky: weights", options.weights.size(), "points", n);
  storage_.resize(n, 0);
  if (n == 0) return;
  left_ = k.diagonal();
  if (!left_.allFinite())
    throw InvalidArgument("rpcholesky: the kernel is not finite at some point");
  // Below this a variance is rounding error, and its column would be noise divided by its root.
  nothing_ = 16 * std::numeric_limits<double>::epsilon() * left_.maxCoeff();
  cumulative_.resize(n);
  update_residual(0, 0);
  trace_ = residual_trace_;
  if (!std::isfinite(trace_))  // draws are made from sums
    throw InvalidArgument(
        "rpcholesky: the variances of the kernel are too large to be added up; scale the data");
  reserve(std::min(options.rank, n));
}

bool RpCholesky::done() const {
  const bool close = options_.tolerance > 0 && residual_trace_ <= options_.tolerance * trace_;
  return exhausted_ || rank_ >= k_.size() || close;
}

void RpCholesky::reserve(Index columns) {
  if (columns > storage_.cols()) storage_.conservativeResize(k_.size(), columns);
}

Index RpCholesky::grow(Index more) {
  const Index before = rank_;
  const Index target = std::min(rank_ + std::max<Index>(more, 0), k_.size());
  while (rank_ < target && !done()) {
    if (!(residual_trace_ > 0)) {
      exhausted_ = true;
      break;
    }
    const Index wanted = target - rank_;
    const Index count = std::min(block_, std::max(smallest_block, 2 * wanted));
    const auto proposed = propose(count);
    Matrix l;
    const auto accepted = accept(proposed, wanted, l);
    if (accepted.empty())
      update_residual(rank_, 0);  // what was proposed turned out to be rounding error
    else
      append(accepted, l);
    // The residual falls while a block is worked through; when most of it is turned down, a
    // smaller block wastes less.
    const auto kept = static_cast<Index>(accepted.size());
    if (kept < wanted && 3 * kept < count) block_ = std::max(smallest_block, block_ / 2);
    if (3 * kept > 2 * count) block_ = std::min(options_.block, 2 * block_);
  }
  return rank_ - before;
}

std::vector<Index> RpCholesky::propose(Index count) {
  double sum = 0;
  for (Index i = 0; i < left_.size(); ++i) cumulative_(i) = sum += weight(i) * left_(i);
  std::vector<Index> proposed(static_cast<std::size_t>(count));
  for (Index& s : proposed) {
    // The first point whose sum exceeds the draw; one with nothing left adds nothing and is never
    // the first.
    const double draw = rng_.uniform() * sum;
    const double *begin = cumulative_.data(), *end = begin + cumulative_.size();
    s = std::min<Index>(std::upper_bound(begin, end, draw) - begin, left_.size() - 1);
  }
  proposals_ += count;
  return proposed;
}

Matrix RpCholesky::residual_gram(const std::vector<Index>& proposed) {
  const auto count = static_cast<Index>(proposed.size());
  Matrix gram(count, count);
  operators::dense_matrix(k_.kernel(), gather_rows(k_.points(), proposed), gram);
  kernel_values_ += static_cast<double>(count) * static_cast<double>(count);
  if (rank_ > 0) {
    const Matrix rows = gather_rows(factor(), proposed);
    gemm(-1.0, rows, Transpose::no, rows, Transpose::yes, 1.0, gram);
  }
  return gram;
}

// Proposal i, drawn with probability proportional to weight and left_, is accepted with probability
// (variance left after those accepted before it) / left_: then it is a draw from what is left.
std::vector<Index> RpCholesky::accept(const std::vector<Index>& proposed, Index most, Matrix& l) {
  Matrix h = residual_gram(proposed);
  const Index count = h.rows();
  std::vector<Index> accepted, position;
  Matrix columns(count, std::min(count, most));
  for (Index i = 0; i < count && static_cast<Index>(accepted.size()) < most; ++i) {
    const Index s = proposed[static_cast<std::size_t>(i)];
    const double draw = rng_.uniform();
    if (!(h(i, i) > nothing_)) {
      // Taken before, a duplicate of one taken before, or never more than rounding error.
      if (accepted.empty()) left_(s) = 0;
      continue;
    }
    if (draw * left_(s) >= h(i, i)) continue;
    const auto a = static_cast<Index>(accepted.size());
    const Index below = count - i;
    auto column = columns.col(a).tail(below);
    column = h.col(i).tail(below) / std::sqrt(h(i, i));
    for (Index j = i + 1; j < count; ++j)
      h.col(j).tail(count - j) -= columns(j, a) * columns.col(a).tail(count - j);
    accepted.push_back(s);
    position.push_back(i);
  }
  const auto kept = static_cast<Index>(accepted.size());
  l = Matrix::Zero(kept, kept);
  for (Index j = 0; j < kept; ++j)
    for (Index i = j; i < kept; ++i) l(i, j) = columns(position[static_cast<std::size_t>(i)], j);
  return accepted;
}

// F_new = (K(:, S) - F F_S') L^-T.
void RpCholesky::append(const std::vector<Index>& accepted, const Matrix& l) {
  const auto count = static_cast<Index>(accepted.size());
  if (rank_ + count > storage_.cols())
    reserve(std::min(k_.size(), std::max(rank_ + count, 2 * storage_.cols())));
  auto fresh = storage_.middleCols(rank_, count);
  k_.columns(accepted, fresh);
  kernel_values_ += static_cast<double>(k_.size()) * static_cast<double>(count);
  if (rank_ > 0)
    gemm(-1.0, factor(), Transpose::no, gather_rows(factor(), accepted), Transpose::yes, 1.0,
         fresh);
  linalg::solve_lower_right(l, Transpose::yes, fresh);
  pivots_.insert(pivots_.end(), accepted.begin(), accepted.end());
  for (const Index s : accepted) left_(s) = 0;
  rank_ += count;
  update_residual(rank_ - count, count);
}

/// Takes columns first .. first + count of F out of the diagonal, and sums it, in fixed chunks.
void RpCholesky::update_residual(Index first, Index count) {
  const Index n = left_.size(), chunks = (n + sampled_chunk - 1) / sampled_chunk;
  Vector sums(chunks);
  const auto body = [&](Index task, int) {
    const Index begin = task * sampled_chunk, rows = std::min(sampled_chunk, n - begin);
    auto left = left_.segment(begin, rows).array();
    for (Index j = first; j < first + count; ++j)
      left -= storage_.col(j).segment(begin, rows).array().square();
    left = (left > nothing_).select(left, 0.0);
    sums(task) = options_.weights.size() > 0
                     ? (left * options_.weights.segment(begin, rows).array()).sum()
                     : left.sum();
  };
  parallel_for(chunks, std::ref(body));
  residual_trace_ = sums.sum();
}

LowRank RpCholesky::take() && {
  LowRank result;
  if (rank_ < storage_.cols()) storage_.conservativeResize(k_.size(), rank_);
  result.columns_evaluated = rank_;
  result.kernel_values = kernel_values_;
  result.factor = std::move(storage_);
  result.pivots = std::move(pivots_);
  result.trace = trace_;
  result.trace_error = residual_trace_;
  result.exhausted = exhausted_;
  rank_ = 0;
  return result;
}

LowRank rpcholesky(const operators::KernelOperator& k, const RpCholeskyOptions& options) {
  RpCholesky factorisation(k, options);
  factorisation.grow(std::min(options.rank, k.size()));
  return std::move(factorisation).take();
}

double rpcholesky_bytes(Index n, Index rank) {
  const auto k = static_cast<double>(std::min(rank, n));
  return 8.0 * (static_cast<double>(n) * (k + 3) + 3 * 128.0 * (k + 128.0));
}

double rpcholesky_flops(Index n, Index rank) {
  const auto k = static_cast<double>(std::min(rank, n));
  return static_cast<double>(n) * k * (k + 130);
}

// About half of the proposals are accepted, in blocks of at most 128.
double rpcholesky_kernel_values(Index n, Index rank) {
  const auto k = static_cast<double>(std::min(rank, n));
  return static_cast<double>(n) * k + 3 * 128.0 * (k + 128.0);
}

}  // namespace mercer::approximations
