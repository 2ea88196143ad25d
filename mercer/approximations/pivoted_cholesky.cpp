#include "mercer/approximations/pivoted_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::approximations {
namespace {

constexpr Index pivot_chunk = 4096;

/// What is left of the diagonal of K, and the point where most is left.
class RemainingVariances {
 public:
  explicit RemainingVariances(Vector diagonal)
      : d_(std::move(diagonal)),
        parts_(static_cast<std::size_t>((d_.size() + pivot_chunk - 1) / pivot_chunk)) {
    update(nullptr);
  }

  double operator()(Index i) const { return d_(i); }
  Index largest() const { return largest_; }
  double trace() const { return trace_; }
  /// Takes a point out of the choice.
  void clear(Index i) { d_(i) = 0; }

  /// d_i = max(d_i - f_i^2, 0), then sums and searches in fixed chunks.
  void update(const double* f) {
    const auto body = [&](Index task, int) {
      Part part{0, task * pivot_chunk};
      const Index end = std::min(d_.size(), (task + 1) * pivot_chunk);
      for (Index i = task * pivot_chunk; i < end; ++i) {
        if (f != nullptr) d_(i) = std::max(d_(i) - f[i] * f[i], 0.0);
        part.sum += d_(i);
        if (d_(i) > d_(part.largest)) part.largest = i;
      }
      parts_[static_cast<std::size_t>(task)] = part;
    };
    parallel_for(static_cast<Index>(parts_.size()), std::ref(body));
    trace_ = 0;
    largest_ = 0;
    for (const Part& part : parts_) {
      trace_ += part.sum;
      if (d_(part.largest) > d_(largest_)) largest_ = part.largest;
    }
  }

 private:
  struct Part {
    double sum = 0;
    Index largest = 0;
  };
  Vector d_;
  std::vector<Part> parts_;
  double trace_ = 0;
  Index largest_ = 0;
};

}  // namespace

LowRank pivoted_cholesky(const operators::KernelOperator& k,
                         const PivotedCholeskyOptions& options) {
  validate(options);
  const Index n = k.size();
  const Index rank = std::min(options.rank, n);
  LowRank result;
  if (n == 0) return result;
  const Vector diagonal = k.diagonal();
  if (!diagonal.allFinite())
    throw InvalidArgument("pivoted Cholesky: the kernel is not finite at some point");
  // Below this a pivot is rounding error, and its column would be noise divided by its root.
  const double nothing = 16 * std::numeric_limits<double>::epsilon() * diagonal.maxCoeff();

  RemainingVariances left(diagonal);
  result.trace = left.trace();
  result.factor.resize(n, rank);
  Vector row(rank);
  Index done = 0;
  while (done < rank && left.trace() > options.tolerance * result.trace) {
    const Index s = left.largest();
    if (!(left(s) > nothing)) {
      result.exhausted = true;
      break;
    }
    // g = K(:, s) - F F(s, :)'
    auto g = result.factor.col(done);
    k.columns(std::span(&s, 1), g);
    ++result.columns_evaluated;
    if (done > 0) {
      row.head(done) = result.factor.row(s).head(done).transpose();
      linalg::gemm(-1.0, result.factor.leftCols(done), linalg::Transpose::no, row.head(done),
                   linalg::Transpose::no, 1.0, g);
    }
    const double pivot = g(s);
    left.clear(s);
    if (!(pivot > nothing)) {  // the tracked variance was rounding error after all
      left.update(nullptr);
      continue;
    }
    g /= std::sqrt(pivot);
    left.update(g.data());
    result.pivots.push_back(s);
    ++done;
  }
  if (done < rank) result.factor.conservativeResize(n, done);
  result.trace_error = left.trace();
  result.kernel_values = static_cast<double>(n) * static_cast<double>(result.columns_evaluated);
  return result;
}

double pivoted_cholesky_bytes(Index n, Index rank) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(std::min(rank, n) + 2);
}

double pivoted_cholesky_flops(Index n, Index rank) {
  const auto r = static_cast<double>(std::min(rank, n));
  return static_cast<double>(n) * r * (r + 3);
}

}  // namespace mercer::approximations
