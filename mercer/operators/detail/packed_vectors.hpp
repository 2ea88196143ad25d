// Blocks of right-hand sides in the layout that the strips multiply.
//
// Columns are taken sixteen at a time, interleaved point by point (`many`); what is left over goes
// in groups of four, two and one whole vectors (`few`). Points are in sorted order and padding is
// zero. In float32 each column is first scaled by a power of two to have entries of about 1.
#pragma once

#include <vector>

#include "mercer/operators/detail/buffer.hpp"
#include "mercer/operators/detail/point_set.hpp"

namespace mercer::operators::detail {

inline constexpr Index kInterleave = 16;

struct VectorChunk {
  bool many = false;
  Index first = 0;   // column of the caller's block
  Index count = 0;   // columns that are real
  Index width = 0;   // columns stored: 16, 4, 2 or 1
  Index offset = 0;  // columns stored before this chunk
};

std::vector<VectorChunk> plan_chunks(Index columns);

/// Columns stored for a block of `columns`, padding included.
Index stored_columns(const std::vector<VectorChunk>& chunks);

/// Power-of-two factor of each column that brings its largest entry into [1, 2).
std::vector<double> column_scales(ConstMatrixView v);

/// v in the layout, times the scales.
template <class T>
Buffer<T> pack_vectors(const PointSet& points, const std::vector<VectorChunk>& chunks,
                       ConstMatrixView v, const std::vector<double>& scales);

/// y(order, :) = factor / scale * packed.
void unpack_vectors(const PointSet& points, const std::vector<VectorChunk>& chunks,
                    const double* packed, double factor, const std::vector<double>& scales,
                    MatrixView y);

/// Multiplies strips with one packed block, from rows and to rows of one set and columns of
/// another (or the same).
template <class T>
class StripMultiplier {
 public:
  StripMultiplier(const std::vector<VectorChunk>& chunks, Index max_columns);

  const T* v_rows = nullptr;  // packed; null when there is no symmetry
  Index rows_padded = 0;
  const T* v_columns = nullptr;  // packed
  Index columns_padded = 0;
  double* y_rows = nullptr;     // packed
  double* y_columns = nullptr;  // packed; null when there is no symmetry

  /// Starts a panel of columns.
  void set_columns(Index begin, Index count);
  /// y_rows(row ..) += strip v_columns, and for the columns by symmetry when asked.
  void multiply(const T* strip, Index row, Index rows, bool symmetric);
  /// Adds what has gathered for the columns to y_columns.
  void flush();

 private:
  simd::StripProduct<T> few_product(const VectorChunk& chunk, const T* strip, Index row, Index rows,
                                    bool symmetric) const;

  const std::vector<VectorChunk>& chunks_;
  const simd::TileKernels<T>& kernels_;
  Index max_columns_;
  Index begin_ = 0;
  Index count_ = 0;
  Buffer<T> partial_;
};

extern template class StripMultiplier<float>;
extern template class StripMultiplier<double>;

}  // namespace mercer::operators::detail
