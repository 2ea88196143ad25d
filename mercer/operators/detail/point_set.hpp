// Points prepared for tiles: sorted so that neighbours share a tile, cut into blocks, and grouped
// by how their distances may be computed without losing digits.
//
// Rows of a group are taken relative to the middle of their box, in double, before anything is
// rounded: near pairs then have small coordinates, wherever the points lie. With
// acc = a.b - |a|^2/2 - |b|^2/2 (`dot`, one operation a feature) the rounding error is about
// u |a||b|, so it is used where the group is small in units of the lengthscale; otherwise
// differences are squared (`direct`, two operations). Where even centred coordinates are many
// lengthscales, differences are taken of the points as they are, in double (`exact`, three
// operations; the group is then `wide` if float32 was asked for).
#pragma once

#include <vector>

#include "mercer/operators/detail/buffer.hpp"
#include "mercer/operators/detail/program.hpp"
#include "mercer/operators/kernel_operator.hpp"

namespace mercer::operators::detail {

inline constexpr Index kTile = 64;

struct RowGroup {
  Index begin = 0;
  Index end = 0;
  std::vector<std::vector<double>> centres;  // of each source
  std::vector<simd::Form> forms;             // of each leaf
  bool wide = false;
};

struct Block {
  Index begin = 0;
  Index end = 0;
  std::vector<RowGroup> groups;
};

/// Lowest and highest value of each input.
struct Box {
  std::vector<double> low;
  std::vector<double> high;
};

struct PointSetOptions {
  Precision precision = Precision::float64;
  bool sort = true;
  bool grouped = true;             // false when the set only ever serves as columns
  Index align = kTile;             // the set is padded to a multiple of this with its last point
  Index tile = kTile;              // smallest group
  Index block = 1024;              // largest block
  bool wide = false;               // evaluate all in double: another set it meets has huge factors
  bool boxes = true;               // false when box() is never asked for
  const double* origin = nullptr;  // phases of periodic leaves count from here; null: first point
  Index origin_stride = 0;
};

class PointSet {
 public:
  PointSet(const Program& program, ConstMatrixView x, const PointSetOptions& options);
  /// Empty until load().
  PointSet(const Program& program, const PointSetOptions& options);
  /// From now on these points; memory is used again.
  void load(ConstMatrixView x);

  Index size() const { return size_; }
  Index padded() const { return padded_; }
  /// order()[k] is the caller's row of sorted point k.
  const std::vector<Index>& order() const { return order_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool any_wide() const { return any_wide_; }
  /// Rows of the largest block.
  Index largest_block() const;
  /// Some inputs of a dot-family leaf are so large that products need the range of double.
  bool huge_factors() const { return huge_factors_; }
  /// Feature f of point k at [f * padded() + k].
  const double* source(int s) const { return sources_[static_cast<std::size_t>(s)].data(); }
  /// A box around points begin .. end (around the whole tiles they touch).
  Box box(Index begin, Index end) const;

  /// True when every kernel value between the two boxes is 0 in the given arithmetic.
  static bool negligible(const Program& program, const Box& a, const Box& b, Precision precision);

 private:
  void split(Index begin, Index end, int depth, ConstMatrixView x);
  void fill_sources(ConstMatrixView x);
  RowGroup describe(Index begin, Index end);
  std::vector<RowGroup> group(Index begin, Index end);
  bool wants_split(const RowGroup& group) const;

  const Program& program_;
  PointSetOptions options_;
  Index size_ = 0;
  Index padded_ = 0;
  int min_depth_ = 0;
  bool any_wide_ = false;
  bool huge_factors_ = false;
  std::vector<double> sort_weights_;  // of each input; empty: no order is better than another
  std::vector<Index> order_;
  std::vector<Block> blocks_;
  std::vector<Box> tile_boxes_;
  std::vector<Buffer<double>> sources_;
  Index room_ = 0;             // padded points that the sources have memory for
  std::vector<double> norms_;  // workspace of describe()
};

}  // namespace mercer::operators::detail
