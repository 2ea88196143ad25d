// Ranks that are threads of one process: what solvers, preconditioners and probes do over MPI, in a
// test. Every rank runs the same code on its rows; a reduction waits for all ranks and combines
// their values in rank order. A rank that leaves (by an exception, or because it took another
// branch) makes the others throw instead of waiting for ever, and so do ranks out of step.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "mercer/linalg/linear_operator.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::testing {

/// The wait for another rank was in vain.
struct RankLeft : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where the ranks meet to combine values.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : parts_(ranks) {}

  void reduce(std::size_t rank, std::span<double> values, linalg::Reduction how) {
    std::unique_lock lock(mutex_);
    if (left_) throw RankLeft("a rank has left while others want to reduce");
    parts_[rank] = values;
    if (arrived_ == 0) how_ = how;
    in_step_ = arrived_ == 0 || (in_step_ && how == how_ && values.size() == size_);
    size_ = values.size();
    const auto meeting = meetings_;
    if (++arrived_ == parts_.size()) {
      if (in_step_) combine();
      arrived_ = 0;
      ++meetings_;
      changed_.notify_all();
    } else {
      constexpr std::chrono::seconds patience{60};
      changed_.wait_for(lock, patience, [&] { return meetings_ != meeting || left_; });
      if (meetings_ == meeting) throw RankLeft("a rank waited in vain for the others");
    }
    if (!in_step_) throw RankLeft("ranks reduce different things at the same time");
    std::copy(result_.begin(), result_.end(), values.begin());
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

  /// Reductions so far.
  long meetings() const { return meetings_; }

 private:
  void combine() {
    result_.assign(parts_[0].begin(), parts_[0].end());
    for (std::size_t rank = 1; rank < parts_.size(); ++rank)
      for (std::size_t i = 0; i < result_.size(); ++i) {
        const double value = parts_[rank][i];
        if (how_ == linalg::Reduction::sum) result_[i] += value;
        if (how_ == linalg::Reduction::max) result_[i] = std::max(result_[i], value);
        if (how_ == linalg::Reduction::min) result_[i] = std::min(result_[i], value);
      }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::span<double>> parts_;
  std::vector<double> result_;
  std::size_t arrived_ = 0, size_ = 0;
  linalg::Reduction how_ = linalg::Reduction::sum;
  long meetings_ = 0;
  bool in_step_ = true, left_ = false;
};

class ThreadRank final : public linalg::Ranks {
 public:
  ThreadRank(Meeting& meeting, std::size_t rank) : meeting_(meeting), rank_(rank) {}
  void reduce(std::span<double> values, linalg::Reduction how) const override {
    meeting_.reduce(rank_, values, how);
  }

 private:
  Meeting& meeting_;
  std::size_t rank_;
};

/// Runs body(space) on two ranks: the first holds rows [0, cut) of n, the second the rest. Throws
/// what a rank threw, the first that was not about another rank. Returns the number of reductions.
template <class Body>
long on_two_ranks(Index n, Index cut, const Body& body) {
  Meeting meeting(2);
  std::exception_ptr problems[2];
  const auto run = [&](std::size_t rank) {
    const ThreadRank ranks(meeting, rank);
    const auto space =
        rank == 0 ? linalg::RowSpace(0, cut, n, ranks) : linalg::RowSpace(cut, n, n, ranks);
    try {
      body(space);
    } catch (...) {
      problems[rank] = std::current_exception();
    }
    meeting.leave();
  };
  std::thread second(run, std::size_t{1});
  run(0);
  second.join();
  std::exception_ptr last;
  for (const auto& problem : problems) {
    if (!problem) continue;
    try {
      std::rethrow_exception(problem);
    } catch (const RankLeft&) {
      last = problem;
    } catch (...) {
      std::rethrow_exception(problem);
    }
  }
  if (last) std::rethrow_exception(last);
  return meeting.meetings();
}

/// All rows of a vector block from the rows of every rank.
inline Matrix gathered(const linalg::RowSpace& space, ConstMatrixView x) {
  Matrix all = Matrix::Zero(space.global_size(), x.cols());
  all.middleRows(space.begin(), x.rows()) = x;
  space.reduce({all.data(), static_cast<std::size_t>(all.size())});
  return all;
}

inline Matrix rows_of(const linalg::RowSpace& space, ConstMatrixView all) {
  return all.middleRows(space.begin(), space.size());
}

/// The rows of a dense symmetric matrix that a rank holds. A row's product is the same bits for any
/// split, so that one and two ranks differ by inner products alone.
class SplitDenseOperator final : public linalg::LinearOperator {
 public:
  SplitDenseOperator(const Matrix& whole, const linalg::RowSpace& space)
      : space_(space), columns_(rows_of(space, whole).transpose()) {}
  Index size() const override { return space_.size(); }
  linalg::RowSpace row_space() const override { return space_; }
  void apply(ConstMatrixView x, MatrixView y) const override {
    const Matrix all = gathered(space_, x);
    for (Index j = 0; j < x.cols(); ++j)
      for (Index i = 0; i < size(); ++i) y(i, j) = columns_.col(i).dot(all.col(j));
    products += x.cols();
  }
  mutable Index products = 0;

 private:
  linalg::RowSpace space_;
  Matrix columns_;  // of rows, so that each is contiguous
};

}  // namespace mercer::testing
