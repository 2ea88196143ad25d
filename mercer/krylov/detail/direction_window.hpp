// The last directions of flexible CG and their products, level by level: a level is an N x t block,
// so that one block of inner products serves all columns. A column's directions since it last
// started anew, 0, 1, 2, ..., go round the levels.
#pragma once

#include <algorithm>
#include <vector>

#include "mercer/core/types.hpp"

namespace mercer::krylov::detail {

class DirectionWindow {
 public:
  /// With `restarts` the memory fills up and starts anew (Notay's truncation-restart).
  DirectionWindow(Index n, Index columns, int size, bool restarts)
      : n_(n), columns_(columns), size_(size), restarts_(restarts) {}

  int levels() const { return static_cast<int>(levels_.size()); }
  const Matrix& p(int level) const { return at(level).p; }
  const Matrix& q(int level) const { return at(level).q; }
  double curvature(int level, Index slot) const { return at(level).curvature(slot); }

  /// Whether direction number k is made conjugate to what this level holds: to the last
  /// min(k, size), or max(1, k mod (size + 1)) with restarts.
  bool reaches(int k, int level) const {
    if (k == 0) return false;
    const int wanted = restarts_ ? std::max(1, k % (size_ + 1)) : std::min(k, size_);
    const int newest = (k - 1) % size_;
    const int lag = newest >= level ? newest - level : newest - level + size_;
    return lag < wanted;
  }

  /// Where direction number k is kept.
  struct Level {
    Matrix p, q;
    Vector curvature;  // <p, q>
  };
  Level& for_direction(int k) {
    const auto level = static_cast<std::size_t>(k % size_);
    while (levels_.size() <= level)
      levels_.push_back(
          {Matrix::Zero(n_, columns_), Matrix::Zero(n_, columns_), Vector::Zero(columns_)});
    return levels_[level];
  }

  void swap_slots(Index i, Index j) {
    for (Level& level : levels_) {
      level.p.col(i).swap(level.p.col(j));
      level.q.col(i).swap(level.q.col(j));
      std::swap(level.curvature(i), level.curvature(j));
    }
  }

 private:
  const Level& at(int level) const { return levels_[static_cast<std::size_t>(level)]; }

  Index n_, columns_;
  int size_;
  bool restarts_;
  std::vector<Level> levels_;
};

}  // namespace mercer::krylov::detail
