// Evaluates strips of a kernel matrix: rows of one group against a panel of columns.
//
//   evaluator.set_rows(rows, group, begin, end);
//   evaluator.set_columns(columns, c0, c1);
//   const T* strip = evaluator.evaluate(row, 8);   // rows row .. row+8 of begin .. end, all
//   columns
//
// Memory: (rows + panel) x features of each leaf, and a strip per program strip.
#pragma once

#include <vector>

#include "mercer/operators/detail/point_set.hpp"

namespace mercer::operators::detail {

struct StripShape {
  Index max_rows = 0;     // of a group
  Index max_columns = 0;  // of a panel
  Index strip_rows = 8;   // evaluated at a time
};

template <class T>
class StripEvaluator {
 public:
  /// `gradient` keeps features free of the profiles' gains, so that acc has its plain meaning.
  StripEvaluator(const Program& program, StripShape shape, bool gradient = false);

  void set_rows(const PointSet& rows, const RowGroup& group, Index begin, Index end);
  void set_columns(const PointSet& columns, Index begin, Index end);
  /// Kernel values without the outer factor, `rows` rows of num_columns() values.
  const T* evaluate(Index row, Index rows);

  Index num_columns() const { return num_columns_; }
  /// The number that leaf l sees of each pair.
  void accumulate(std::size_t l, Index row, Index rows, T* acc) const;
  const simd::LeafPanel<T>& panel(std::size_t l) const { return panels_[l]; }
  const simd::TileKernels<T>& kernels() const { return kernels_; }

 private:
  const Program& program_;
  const simd::TileKernels<T>& kernels_;
  StripShape shape_;
  Index column_stride_ = 0;
  Index num_columns_ = 0;
  std::vector<std::vector<double>> scales_;   // of each leaf's features, for the current group
  std::vector<std::vector<double>> centres_;  // of each leaf's features, for the current group
  std::vector<std::vector<T>> late_scales_;   // of the exact form
  std::vector<simd::LeafPanel<T>> panels_;
  std::vector<Buffer<T>> row_features_;
  std::vector<Buffer<T>> row_norms_;
  std::vector<Buffer<T>> column_features_;
  std::vector<Buffer<T>> column_norms_;
  Buffer<T> unpacked_;
  Buffer<T> acc_;
  std::vector<Buffer<T>> strips_;
  Buffer<double> norm_workspace_;
  bool gradient_;
};

extern template class StripEvaluator<float>;
extern template class StripEvaluator<double>;

/// Columns of a panel, so that panel and strips stay in the first-level cache.
Index panel_columns(const Program& program, Index bytes, bool many_vectors);

}  // namespace mercer::operators::detail
