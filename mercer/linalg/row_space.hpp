// Which rows of a matrix this process holds, and how the processes that share the matrix agree on
// numbers. Vectors hold the rows of their process only; everything that depends on all rows (inner
// products, stop decisions, small matrices) goes through a reduction, so that every process takes
// the same branch. On one process a reduction does nothing.
//   Cost: one virtual call a reduction where rows are shared, a test of a pointer where not.
#pragma once

#include <span>

#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

/// How the values of all ranks become one.
enum class Reduction { sum, max, min };

/// The processes (ranks) that share the rows of one matrix: MPI, or threads in a test.
class Ranks {
 public:
  virtual ~Ranks() = default;
  /// Each of `values` becomes its sum, maximum or minimum over all ranks, the same bits on every
  /// rank. All ranks make the same calls in the same order, with the same number of values. Throws
  /// when a rank has left (by an exception, say), instead of waiting for it.
  virtual void reduce(std::span<double> values, Reduction how) const = 0;
};

/// Rows [begin, end) of `global_size` are held here.
class RowSpace {
 public:
  /// All rows are here.
  static RowSpace local(Index rows) { return RowSpace(0, rows, rows, nullptr); }
  /// Throws InvalidArgument unless 0 <= begin <= end <= rows. `ranks` must outlive every copy.
  RowSpace(Index begin, Index end, Index rows, const Ranks& ranks);

  Index begin() const { return begin_; }
  Index end() const { return end_; }
  /// Rows held here: what vectors of this process have.
  Index size() const { return (end_ - begin_) * copies_; }
  /// Rows on all ranks.
  Index global_size() const { return rows_ * copies_; }
  /// Whether other ranks hold rows too.
  bool split() const { return ranks_ != nullptr; }
  bool holds(Index row) const { return begin_ <= row && row < end_; }

  /// `copies` vectors of this space one below the other, as one: row i of copy c is row
  /// c * global_size() + i of the whole. Throws when this is itself stacked.
  RowSpace stacked(Index copies) const;
  Index copies() const { return copies_; }

  void reduce(std::span<double> values, Reduction how = Reduction::sum) const {
    if (ranks_ != nullptr) ranks_->reduce(values, how);
  }
  double sum(double value) const;
  double max(double value) const;
  double min(double value) const;
  /// Whether it is so on any rank, on all ranks.
  bool any(bool here) const { return split() ? max(here ? 1.0 : 0.0) > 0 : here; }
  bool all(bool here) const { return !any(!here); }

  /// The same rows of as many, among the same ranks.
  friend bool operator==(const RowSpace&, const RowSpace&) = default;

 private:
  RowSpace(Index begin, Index end, Index rows, const Ranks* ranks)
      : begin_(begin), end_(end), rows_(rows), ranks_(ranks) {}

  Index begin_, end_, rows_;
  Index copies_ = 1;
  const Ranks* ranks_;
};

/// The rows held here of what rng.fill_normal, rng.fill_rademacher draw for all rows. The stream
/// ends at the same place on every rank, so any split draws the numbers of one process.
void fill_normal(Rng& rng, const RowSpace& space, MatrixView out);
void fill_rademacher(Rng& rng, const RowSpace& space, MatrixView out);

}  // namespace mercer::linalg
MERCER_API_END
