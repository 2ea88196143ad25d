#include "mercer/preconditioners/ilu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {
namespace {

constexpr Index columns_at_once = 64;
constexpr double shift_growth = 4;

/// A without its small entries.
struct Sparsified {
  SparseLower lower;
  Vector diagonal;  // of A, noise included
};

/// The threshold of entry (i, j) is root(i) root(j) drop.
Sparsified sparsify(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                    double drop) {
  const Index n = k.size();
  const Matrix& x = k.points();
  Sparsified a;
  a.diagonal = k.diagonal() + noise.vector(n);
  if (n > 0 && (!(a.diagonal.minCoeff() > 0) || !a.diagonal.allFinite()))
    throw InvalidArgument(
        "ilu: the diagonal of the kernel matrix plus noise must be positive and finite");
  const Vector root = a.diagonal.cwiseSqrt();
  a.lower.start.push_back(0);
  Matrix panel;
  for (Index first = 0; first < n; first += columns_at_once) {
    const Index columns = std::min(columns_at_once, n - first);
    panel.resize(n - first, columns);
    operators::cross_matrix(k.kernel(), x.bottomRows(n - first), x.middleRows(first, columns),
                            panel);
    for (Index j = 0; j < columns; ++j) {
      const double least = drop * root(first + j);
      for (Index i = j + 1; i < n - first; ++i) {
        const double value = panel(i, j);
        if (value == 0 || std::abs(value) < least * root(first + i)) continue;
        a.lower.row.push_back(static_cast<std::int32_t>(first + i));
        a.lower.value.push_back(value);
      }
      a.lower.start.push_back(static_cast<std::int64_t>(a.lower.value.size()));
    }
  }
  return a;
}

/// A + shift I ~ L L', column by column, each from the columns before that reach it (left-looking).
class Factorisation {
 public:
  Factorisation(const Sparsified& a, double drop, const linalg::Diagonal& least_pivot)
      : a_(a),
        drop_(drop),
        least_pivot_(least_pivot),
        root_(a.diagonal.cwiseSqrt()),
        work_(a.diagonal.size()) {}

  /// False when a pivot falls below the least that A allows.
  bool run(double shift) {
    const Index n = work_.size();
    const auto size = static_cast<std::size_t>(n);
    l_ = {};
    l_.start.push_back(0);
    diagonal_.resize(n);
    next_.assign(size, 0);
    following_.assign(size, -1);
    waiting_.assign(size, -1);
    work_.setZero();
    for (Index j = 0; j < n; ++j)
      if (!column(j, shift)) return false;
    return true;
  }

  SparseLower take_factor() { return std::move(l_); }
  Vector take_diagonal() { return std::move(diagonal_); }

 private:
  bool column(Index j, double shift) {
    const auto at = static_cast<std::size_t>(j);
    for (auto p = a_.lower.start[at]; p < a_.lower.start[at + 1]; ++p)
      work_(a_.lower.row[std::size_t(p)]) = a_.lower.value[std::size_t(p)];
    double pivot = a_.diagonal(j) + shift;
    // w -= L(j:n, k) L(j, k) for every k whose next row is j
    for (Index k = waiting_[at]; k >= 0;) {
      const Index after = following_[std::size_t(k)];
      const auto p = next_[std::size_t(k)], end = l_.start[std::size_t(k) + 1];
      const double ljk = l_.value[std::size_t(p)];
      pivot -= ljk * ljk;
      for (auto q = p + 1; q < end; ++q)
        work_(l_.row[std::size_t(q)]) -= ljk * l_.value[std::size_t(q)];
      queue(k, p + 1);
      k = after;
    }
    if (!(pivot >= least_pivot_(j))) return false;
    diagonal_(j) = std::sqrt(pivot);
    const double least = drop_ * root_(j);
    for (Index i = j + 1; i < work_.size(); ++i) {
      const double value = work_(i);
      work_(i) = 0;
      if (value == 0 || std::abs(value) < least * root_(i)) continue;
      l_.row.push_back(static_cast<std::int32_t>(i));
      l_.value.push_back(value / diagonal_(j));
    }
    l_.start.push_back(static_cast<std::int64_t>(l_.value.size()));
    queue(j, l_.start[at]);
    return true;
  }

  /// Column k waits for the row of its entry p.
  void queue(Index k, std::int64_t p) {
    if (p == l_.start[std::size_t(k) + 1]) return;
    const auto row = static_cast<std::size_t>(l_.row[std::size_t(p)]);
    next_[std::size_t(k)] = p;
    following_[std::size_t(k)] = waiting_[row];
    waiting_[row] = k;
  }

  const Sparsified& a_;
  double drop_;
  linalg::Diagonal least_pivot_;
  Vector root_, work_, diagonal_;
  SparseLower l_;
  std::vector<std::int64_t> next_;          // of each column, the entry it is used for next
  std::vector<Index> waiting_, following_;  // lists of columns that wait for a row
};

double bytes_of(double n, double entries) { return 12 * entries + 24 * n; }

Built make_ilu(const Target& target, const PreconditionerOptions& options) {
  const auto n = static_cast<double>(target.k.size());
  auto p = std::make_unique<IncompleteCholesky>(target.k, target.noise,
                                                options.drop.value_or(default_drop));
  Built built;
  built.report.bytes = bytes_of(n, static_cast<double>(p->entries()));
  built.report.kernel_values = n * (n + 1) / 2 + static_cast<double>(columns_at_once) * n / 2;
  built.report.notes =
      fmt::format("{:.3g} % of the lower triangle kept",
                  n > 1 ? 100 * static_cast<double>(p->entries()) / (n * (n - 1) / 2) : 100);
  if (p->shift() > 0)
    built.report.notes +=
        fmt::format("; {:.2e} added to the diagonal to stay positive definite", p->shift());
  built.preconditioner = std::move(p);
  return built;
}

Cost ilu_cost(Index size, Index, const PreconditionerOptions&) {
  const auto n = static_cast<double>(size);
  const double bytes = bytes_of(n, n * n / 2);
  return {.bytes = bytes,
          .peak_bytes = 2 * bytes + 8 * n * (static_cast<double>(columns_at_once) + 5),
          .kernel_values = n * (n + 1) / 2 + static_cast<double>(columns_at_once) * n / 2,
          .thin_flops = n * n * n / 3,
          .apply_flops = 2 * n * n};
}

}  // namespace

PreconditionerInfo ilu_info() {
  return {.name = "ilu",
          .summary = "incomplete Cholesky of K plus noise (up to N^2 memory)",
          .make = make_ilu,
          .cost = ilu_cost,
          .takes = {.drop = true}};
}

IncompleteCholesky::IncompleteCholesky(const operators::KernelOperator& k,
                                       const linalg::Diagonal& noise, double drop) {
  if (!(drop >= 0) || !std::isfinite(drop))
    throw InvalidArgument(fmt::format("ilu: drop is {}, but must be zero or positive", drop));
  noise.require_nonnegative("ilu");
  if (k.size() > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgument("ilu: more than 2^31 - 1 points");
  const auto a = sparsify(k, noise, drop);
  const double largest = k.size() == 0 ? 0.0 : a.diagonal.maxCoeff();
  const double rounding =
      static_cast<double>(k.size()) * std::numeric_limits<double>::epsilon() * largest;
  // Half of the noise, to leave room for rounding in a factor that leaves nothing out.
  Factorisation factorisation(a, drop, noise.times(0.5).raised_to(rounding / 100));
  for (attempts_ = 1; !factorisation.run(shift_); ++attempts_) {
    shift_ =
        shift_ == 0 ? std::max({drop * largest, noise.least(), rounding}) : shift_growth * shift_;
    if (!(shift_ <= 10.0 * static_cast<double>(k.size()) * largest))
      throw NotPositiveDefinite("ilu: no shift makes the incomplete factor positive definite", 0);
  }
  l_ = factorisation.take_factor();
  diagonal_ = factorisation.take_diagonal();
}

// L L' z = r, forwards and backwards, each right-hand side on its own.
void IncompleteCholesky::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("ilu: rows of r", r.rows(), "size", size());
  z = r;
  const auto body = [&](Index task, int) {
    double* x = z.col(task).data();
    for (Index j = 0; j < size(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      x[j] /= diagonal_(j);
      for (auto p = std::size_t(l_.start[at]); p < std::size_t(l_.start[at + 1]); ++p)
        x[l_.row[p]] -= l_.value[p] * x[j];
    }
    for (Index j = size() - 1; j >= 0; --j) {
      const auto at = static_cast<std::size_t>(j);
      double sum = x[j];
      for (auto p = std::size_t(l_.start[at]); p < std::size_t(l_.start[at + 1]); ++p)
        sum -= l_.value[p] * x[l_.row[p]];
      x[j] = sum / diagonal_(j);
    }
  };
  parallel_for(z.cols(), std::ref(body));
}

double IncompleteCholesky::log_det() const { return 2 * diagonal_.array().log().sum(); }

// L xi, from the last column on, so that entries are used before they change.
void IncompleteCholesky::sample(Rng& rng, MatrixView z) const {
  if (z.rows() != size()) throw DimensionMismatch("ilu: rows of z", z.rows(), "size", size());
  rng.fill_normal(z);
  const auto body = [&](Index task, int) {
    double* x = z.col(task).data();
    for (Index j = size() - 1; j >= 0; --j) {
      const auto at = static_cast<std::size_t>(j);
      for (auto p = std::size_t(l_.start[at]); p < std::size_t(l_.start[at + 1]); ++p)
        x[l_.row[p]] += l_.value[p] * x[j];
      x[j] *= diagonal_(j);
    }
  };
  parallel_for(z.cols(), std::ref(body));
}

}  // namespace mercer::preconditioners
