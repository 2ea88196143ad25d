// The m smallest of a stream of scores, with their indices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "mercer/core/types.hpp"

namespace mercer::approximations::detail {

using Scored = std::pair<float, std::int32_t>;

/// Writes the indices of `scored`, ascending.
inline void write_indices(std::vector<Scored>& scored, std::int32_t* out) {
  for (std::size_t k = 0; k < scored.size(); ++k) out[k] = scored[k].second;
  std::sort(out, out + scored.size());
}

/// For long runs of scores, most of which are turned away by one comparison. Exact, and ties go to
/// the smaller index, when indices come in ascending order.
class Smallest {
 public:
  explicit Smallest(Index most) : most_(static_cast<std::size_t>(most)) { kept_.reserve(room()); }

  /// Scores of indices first .. first + count.
  void add(const float* scores, Index first, Index count) {
    constexpr Index group = 32;
    Index i = 0;
    for (; i + group <= count; i += group) {
      std::int32_t hits = 0;  // a sum rather than a branch: the compiler makes it SIMD
      for (Index k = 0; k < group; ++k) hits += scores[i + k] < threshold_ ? 1 : 0;
      if (hits == 0) continue;
      for (Index k = 0; k < group; ++k) add_one(scores[i + k], first + i + k);
    }
    for (; i < count; ++i) add_one(scores[i], first + i);
  }

  void add_one(float score, Index index) {
    if (!(score < threshold_)) return;
    kept_.emplace_back(score, static_cast<std::int32_t>(index));
    if (kept_.size() == room()) cut();
  }

  /// The indices of the smallest, ascending; as many as there are, at most `most`.
  void write(std::int32_t* out) {
    cut();
    write_indices(kept_, out);
  }

 private:
  std::size_t room() const { return 2 * most_ + 32; }
  void cut() {
    if (kept_.size() <= most_) return;
    if (most_ == 0) return kept_.clear();
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(most_) - 1;
    std::nth_element(kept_.begin(), last, kept_.end());
    threshold_ = last->first;
    kept_.resize(most_);
  }

  std::size_t most_;
  float threshold_ = std::numeric_limits<float>::infinity();
  std::vector<Scored> kept_;
};

/// For searches that want to know the largest kept at any time.
class BoundedHeap {
 public:
  explicit BoundedHeap(Index most) : most_(static_cast<std::size_t>(most)) { heap_.reserve(most_); }
  std::size_t size() const { return heap_.size(); }
  bool full() const { return heap_.size() == most_; }
  float threshold() const {
    if (heap_.empty() || !full()) return std::numeric_limits<float>::max();
    return heap_.front().first;
  }
  void add_one(float score, Index index) {
    if (most_ == 0) return;
    const Scored fresh(score, static_cast<std::int32_t>(index));
    if (full()) {
      if (!(fresh < heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = fresh;
    } else {
      heap_.push_back(fresh);
    }
    std::push_heap(heap_.begin(), heap_.end());
  }
  void write(std::int32_t* out) const {
    auto copy = heap_;
    write_indices(copy, out);
  }

 private:
  std::size_t most_;
  std::vector<Scored> heap_;
};

}  // namespace mercer::approximations::detail
