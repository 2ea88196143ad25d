#include "mercer/approximations/vecchia.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"
#include "mercer/operators/small_sets.hpp"

namespace mercer::approximations {
namespace {

using linalg::Transpose;

constexpr Index rows_to_a_task = 64;      // when building
constexpr Index rows_to_a_product = 512;  // when multiplying
constexpr Index width = 8;                // columns multiplied at once

template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// F' with points in the given order. Entries whose squares would be subnormal become 0: at short
/// lengthscales most are, and processors take a hundred times as long for them. `largest` is the
/// largest variance, so what is lost is below rounding.
template <class T>
Columns<T> ordered_columns(ConstMatrixView f, const std::vector<std::int32_t>& order,
                           double largest) {
  const double least = 4 * std::sqrt(std::numeric_limits<T>::min()) * std::sqrt(largest);
  Columns<T> result(f.cols(), f.rows());
  const Index n = f.rows(), tasks = (n + rows_to_a_task - 1) / rows_to_a_task;
  const auto body = [&](Index task, int) {
    for (Index i = task * rows_to_a_task; i < std::min(n, (task + 1) * rows_to_a_task); ++i)
      for (Index j = 0; j < f.cols(); ++j)
        if (const double v = f(order[static_cast<std::size_t>(i)], j); std::abs(v) > least)
          result(j, i) = static_cast<T>(v);
        else
          result(j, i) = T{0};
  };
  parallel_for(tasks, std::ref(body));
  return result;
}

/// The small matrices, one after the other: a thread's own memory.
template <class T>
class SmallProblem {
 public:
  SmallProblem(const Residual& r, const Columns<T>& factor)
      : r_(r), sets_(r.kernel), factor_(factor) {}

  /// The last row of the inverse Cholesky factor of R over these points (positions in order).
  /// Returns false if the diagonal had to be raised.
  bool solve(std::span<const std::int32_t> before, Index point) {
    const Index n = gather(before, point), k = factor_.rows();
    kernel_.resize(n, n);
    sets_.load(points_);
    sets_.matrix(kernel_);
    if (k > 0) {
      gram_.resize(n, n);
      linalg::small_gram<T>(k, n, T(1), columns_.data(), T(0), gram_.data());
      for (Index j = 0; j < n; ++j)
        kernel_.col(j).tail(n - j) -= gram_.col(j).tail(n - j).template cast<double>();
    }
    kernel_.diagonal() += noise_;
    const double extra = linalg::small_cholesky_raised(kernel_, l_, "vecchia");
    // R = L L', so that R^-1 e / sqrt(e'R^-1 e) = L'^-1 e for the last unit vector e.
    row_.setZero(n);
    row_(n - 1) = 1;
    linalg::small_solve_lower(n, l_.data(), Transpose::yes, row_.data());
    return extra == 0;
  }

  const Vector& row() const { return row_; }

  /// out = (row of G) F.
  void row_times_factor(double* out) {
    const Index n = row_.size(), k = factor_.rows();
    row_in_t_ = row_.template cast<T>();
    product_.resize(k);
    linalg::small_multiply<T>(k, n, columns_.data(), Transpose::no, row_in_t_.data(),
                              product_.data());
    for (Index j = 0; j < k; ++j) out[j] = static_cast<double>(product_(j));
  }

 private:
  Index gather(std::span<const std::int32_t> before, Index point) {
    const auto n = static_cast<Index>(before.size()) + 1;
    points_.resize(n, r_.x.cols());
    noise_.resize(n);
    columns_.resize(factor_.rows(), n);
    for (Index j = 0; j < n; ++j) {
      const Index from = j + 1 < n ? before[static_cast<std::size_t>(j)] : point;
      points_.row(j) = r_.x.row(from);
      noise_(j) = r_.noise(from);
      columns_.col(j) = factor_.col(from);
    }
    return n;
  }

  const Residual& r_;
  operators::SmallSets sets_;
  const Columns<T>& factor_;
  Matrix points_, kernel_, l_;
  Columns<T> columns_, gram_;
  Vector noise_, row_;
  Eigen::Matrix<T, Eigen::Dynamic, 1> row_in_t_, product_;
};

}  // namespace

Vecchia::Vecchia(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                 const VecchiaOptions& options)
    : Vecchia(k, noise, Matrix(k.size(), 0), options) {}

Vecchia::Vecchia(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                 ConstMatrixView f, const VecchiaOptions& options, Matrix* product) {
  validate(options);
  const Index n = k.size();
  if (f.rows() != n) throw DimensionMismatch("vecchia: rows of the factor", f.rows(), "points", n);
  noise.require_size(n, "vecchia");
  noise.require_positive("vecchia");
  const auto permutation = Rng(options.seed, "vecchia order").permutation(n);
  order_.assign(permutation.begin(), permutation.end());
  Matrix x(n, k.points().cols());
  for (Index i = 0; i < n; ++i) x.row(i) = k.points().row(permutation[static_cast<std::size_t>(i)]);

  const double largest = n > 0 ? k.diagonal().maxCoeff() : 0.0;
  const linalg::Diagonal raised = noise.raised_to(options.least_noise * largest);
  least_noise_ = raised.least();
  const auto columns = ordered_columns<float>(f, order_, largest);
  const Residual r{k.kernel(), x, raised.rows(permutation), f.cols() > 0 ? &columns : nullptr};
  auto search = options.search;
  search.count = options.neighbours;
  const auto neighbours = most_correlated(r, search);
  neighbours_ = neighbours.most;
  kernel_values_ = neighbours.kernel_values;
  all_pairs_ = neighbours.all_pairs;
  if (product != nullptr) product->resize(n, f.cols());
  if (f.cols() == 0 || least_noise_ >= options.float32_from * largest)
    build<float>(r, neighbours, columns, product);
  else
    build<double>(r, neighbours, ordered_columns<double>(f, order_, largest), product);
  transpose();
}

template <class T>
void Vecchia::build(const Residual& r, const Neighbours& neighbours, const Columns<T>& factor,
                    Matrix* product) {
  const Index n = size(), k = factor.rows();
  rows_.start.assign(static_cast<std::size_t>(n + 1), 0);
  for (Index i = 0; i < n; ++i)
    rows_.start[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)]) + 1] =
        neighbours.count(i) + 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    rows_.start[i + 1] += rows_.start[i];
  rows_.index.resize(static_cast<std::size_t>(rows_.start.back()));
  rows_.value.resize(rows_.index.size());

  const Index tasks = (n + rows_to_a_task - 1) / rows_to_a_task;
  std::vector<Index> raised(static_cast<std::size_t>(tasks), 0);
  const auto body = [&](Index task, int) {
    SmallProblem<T> problem(r, factor);
    std::vector<double> row(static_cast<std::size_t>(k));
    for (Index i = task * rows_to_a_task; i < std::min(n, (task + 1) * rows_to_a_task); ++i) {
      const auto before = neighbours.of(i);
      if (!problem.solve(before, i)) ++raised[static_cast<std::size_t>(task)];
      const Index point = order_[static_cast<std::size_t>(i)];
      auto at = static_cast<std::size_t>(rows_.start[static_cast<std::size_t>(point)]);
      for (Index j = 0; j < problem.row().size(); ++j, ++at) {
        const Index from = j + 1 < problem.row().size() ? before[static_cast<std::size_t>(j)] : i;
        rows_.index[at] = order_[static_cast<std::size_t>(from)];
        rows_.value[at] = problem.row()(j);
      }
      if (product == nullptr || k == 0) continue;
      problem.row_times_factor(row.data());
      for (Index j = 0; j < k; ++j) (*product)(point, j) = row[static_cast<std::size_t>(j)];
    }
  };
  parallel_for(tasks, std::ref(body));

  log_det_ = 0;
  for (Index i = 0; i < n; ++i) {
    log_det_ -= 2 * std::log(rows_.value[static_cast<std::size_t>(
                        rows_.start[static_cast<std::size_t>(i) + 1] - 1)]);
    const auto set = static_cast<double>(neighbours.count(i) + 1);
    kernel_values_ += set * set;
  }
  for (const Index count : raised) raised_ += count;
}

Vecchia::Row Vecchia::row(Index point) const {
  const auto begin = static_cast<std::size_t>(rows_.start[static_cast<std::size_t>(point)]);
  const auto end = static_cast<std::size_t>(rows_.start[static_cast<std::size_t>(point) + 1]);
  return {{rows_.index.data() + begin, end - begin}, {rows_.value.data() + begin, end - begin}};
}

void Vecchia::transpose() {
  const auto n = static_cast<std::size_t>(size());
  columns_.start.assign(n + 1, 0);
  columns_.index.resize(rows_.index.size());
  columns_.value.resize(rows_.value.size());
  for (const std::int32_t c : rows_.index) ++columns_.start[static_cast<std::size_t>(c) + 1];
  for (std::size_t i = 0; i < n; ++i) columns_.start[i + 1] += columns_.start[i];
  std::vector<Index> next(columns_.start.begin(), columns_.start.end() - 1);
  for (const std::int32_t row : order_) {
    const auto i = static_cast<std::size_t>(row);
    for (Index at = rows_.start[i]; at < rows_.start[i + 1]; ++at) {
      const auto from = static_cast<std::size_t>(at);
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(rows_.index[from])]++);
      columns_.index[to] = row;
      columns_.value[to] = rows_.value[from];
    }
  }
}

// Columns are taken eight at a time, interleaved, so that an entry of G meets eight neighbours in
// memory.
void Vecchia::multiply(const Sparse& a, ConstMatrixView x, MatrixView y) {
  const auto n = static_cast<Index>(a.start.size()) - 1;
  if (x.rows() != n) throw DimensionMismatch("vecchia: rows of x", x.rows(), "points", n);
  if (y.rows() != n || y.cols() != x.cols())
    throw DimensionMismatch("vecchia: size of y", y.size(), "size of x", x.size());
  thread_local std::vector<double> buffer;
  const Index tasks = (n + rows_to_a_product - 1) / rows_to_a_product;
  for (Index first = 0; first < x.cols(); first += width) {
    const Index count = std::min(width, x.cols() - first);
    const double* packed = x.data() + first * x.outerStride();
    if (count > 1) {
      buffer.resize(static_cast<std::size_t>(n * width));
      for (Index i = 0; i < n; ++i)
        for (Index c = 0; c < width; ++c)
          buffer[static_cast<std::size_t>(i * width + c)] = c < count ? x(i, first + c) : 0.0;
      packed = buffer.data();
    }
    const auto body = [&](Index task, int) {
      for (Index i = task * rows_to_a_product; i < std::min(n, (task + 1) * rows_to_a_product);
           ++i) {
        const auto begin = static_cast<std::size_t>(a.start[static_cast<std::size_t>(i)]);
        const auto end = static_cast<std::size_t>(a.start[static_cast<std::size_t>(i) + 1]);
        double sum[width] = {};
        if (count == 1)
          for (std::size_t at = begin; at < end; ++at) sum[0] += a.value[at] * packed[a.index[at]];
        else
          for (std::size_t at = begin; at < end; ++at) {
            const double* row = packed + width * static_cast<Index>(a.index[at]);
            for (Index c = 0; c < width; ++c) sum[c] += a.value[at] * row[c];
          }
        for (Index c = 0; c < count; ++c) y(i, first + c) = sum[c];
      }
    };
    parallel_for(tasks, std::ref(body));
  }
}

void Vecchia::solve(MatrixView x) const {
  if (x.rows() != size()) throw DimensionMismatch("vecchia: rows of x", x.rows(), "points", size());
  const auto body = [&](Index column, int) {
    double* z = x.data() + column * x.outerStride();
    for (const std::int32_t row : order_) {
      const auto i = static_cast<std::size_t>(row);
      const auto last = static_cast<std::size_t>(rows_.start[i + 1]) - 1;
      double sum = z[row];
      for (auto at = static_cast<std::size_t>(rows_.start[i]); at < last; ++at)
        sum -= rows_.value[at] * z[rows_.index[at]];
      z[row] = sum / rows_.value[last];
    }
  };
  parallel_for(x.cols(), std::ref(body));
}

void Vecchia::solve_transposed(MatrixView x) const {
  if (x.rows() != size()) throw DimensionMismatch("vecchia: rows of x", x.rows(), "points", size());
  const auto body = [&](Index column, int) {
    double* z = x.data() + column * x.outerStride();
    for (auto row = order_.rbegin(); row != order_.rend(); ++row) {
      const auto i = static_cast<std::size_t>(*row);
      const auto first = static_cast<std::size_t>(columns_.start[i]);
      double sum = z[*row];
      for (auto at = first + 1; at < static_cast<std::size_t>(columns_.start[i + 1]); ++at)
        sum -= columns_.value[at] * z[columns_.index[at]];
      z[*row] = sum / columns_.value[first];
    }
  };
  parallel_for(x.cols(), std::ref(body));
}

double Vecchia::bytes(Index n, Index neighbours) {
  const auto m = static_cast<double>(std::min(neighbours, std::max<Index>(n - 1, 0)));
  return static_cast<double>(n) * (24.0 * (m + 1) + 20.0) + 16.0;
}

double Vecchia::building_bytes(Index n, Index d, Index neighbours, Index rank) {
  const double candidates = rank > 0 ? 3 : 1;  // and those chosen
  return static_cast<double>(n) *
         (16.0 * static_cast<double>(d) + 4.0 * candidates * static_cast<double>(neighbours) +
          12.0 * static_cast<double>(rank));
}

double Vecchia::kernel_values(Index n, Index neighbours, bool residual) {
  const auto set = static_cast<double>(std::min(neighbours + 1, n));
  return static_cast<double>(n) * set * set + neighbours_kernel_values(n, neighbours, residual);
}

double Vecchia::build_flops(Index n, Index d, Index neighbours, Index rank) {
  const auto set = static_cast<double>(std::min(neighbours + 1, n));
  return static_cast<double>(n) * set * set * (set / 3 + static_cast<double>(rank) + 1) +
         neighbours_flops(n, d, neighbours, rank);
}

double Vecchia::apply_flops(Index n, Index neighbours) {
  return 4.0 * static_cast<double>(n) * static_cast<double>(std::min(neighbours + 1, n));
}

}  // namespace mercer::approximations
