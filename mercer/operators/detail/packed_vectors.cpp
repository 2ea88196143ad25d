#include "mercer/operators/detail/packed_vectors.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/core/threads.hpp"

namespace mercer::operators::detail {

std::vector<VectorChunk> plan_chunks(Index columns) {
  std::vector<VectorChunk> chunks;
  Index first = 0;
  Index offset = 0;
  while (first < columns) {
    const Index left = columns - first;
    // A padded chunk of sixteen beats many small ones from twelve on.
    const bool many = left >= 12;
    const Index width = many ? kInterleave : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const Index count = std::min(left, width);
    chunks.push_back({many, first, count, width, offset});
    first += count;
    offset += width;
  }
  return chunks;
}

Index stored_columns(const std::vector<VectorChunk>& chunks) {
  return chunks.empty() ? 0 : chunks.back().offset + chunks.back().width;
}

std::vector<double> column_scales(ConstMatrixView v) {
  std::vector<double> scales(static_cast<std::size_t>(v.cols()), 1.0);
  for (Index c = 0; c < v.cols(); ++c) {
    const double largest = v.rows() == 0 ? 0.0 : v.col(c).cwiseAbs().maxCoeff();
    // Exponents within +-1000: the scale and its inverse are both normal numbers.
    if (std::isfinite(largest) && largest > 0)
      scales[static_cast<std::size_t>(c)] =
          std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1000, 1000));
  }
  return scales;
}

template <class T>
Buffer<T> pack_vectors(const PointSet& points, const std::vector<VectorChunk>& chunks,
                       ConstMatrixView v, const std::vector<double>& scales) {
  const Index padded = points.padded();
  Buffer<T> packed(stored_columns(chunks) * padded);
  const auto& order = points.order();
  for (const auto& chunk : chunks) {
    T* out = packed.data() + chunk.offset * padded;
    std::fill(out, out + chunk.width * padded, T(0));
    for (Index c = 0; c < chunk.count; ++c) {
      const double scale = scales[static_cast<std::size_t>(chunk.first + c)];
      for (Index k = 0; k < points.size(); ++k) {
        const double value = v(order[static_cast<std::size_t>(k)], chunk.first + c) * scale;
        out[chunk.many ? k * chunk.width + c : c * padded + k] = static_cast<T>(value);
      }
    }
  }
  return packed;
}

template Buffer<float> pack_vectors(const PointSet&, const std::vector<VectorChunk>&,
                                    ConstMatrixView, const std::vector<double>&);
template Buffer<double> pack_vectors(const PointSet&, const std::vector<VectorChunk>&,
                                     ConstMatrixView, const std::vector<double>&);

void unpack_vectors(const PointSet& points, const std::vector<VectorChunk>& chunks,
                    const double* packed, double factor, const std::vector<double>& scales,
                    MatrixView y) {
  const Index padded = points.padded();
  const auto& order = points.order();
  for (const auto& chunk : chunks) {
    const double* in = packed + chunk.offset * padded;
    for (Index c = 0; c < chunk.count; ++c) {
      const double scale = factor / scales[static_cast<std::size_t>(chunk.first + c)];
      for (Index k = 0; k < points.size(); ++k)
        y(order[static_cast<std::size_t>(k)], chunk.first + c) =
            in[chunk.many ? k * chunk.width + c : c * padded + k] * scale;
    }
  }
}

template <class T>
StripMultiplier<T>::StripMultiplier(const std::vector<VectorChunk>& chunks, Index max_columns)
    : chunks_(chunks),
      kernels_(simd::tile_kernels(T())),
      max_columns_(max_columns),
      partial_(stored_columns(chunks) * max_columns) {
  std::fill(partial_.data(), partial_.data() + stored_columns(chunks) * max_columns, T(0));
}

template <class T>
void StripMultiplier<T>::set_columns(Index begin, Index count) {
  begin_ = begin;
  count_ = count;
}

template <class T>
simd::StripProduct<T> StripMultiplier<T>::few_product(const VectorChunk& chunk, const T* strip,
                                                      Index row, Index rows, bool symmetric) const {
  simd::StripProduct<T> p;
  p.strip = strip;
  p.rows = rows;
  p.columns = count_;
  p.vectors = chunk.width;
  p.column_v = v_columns + chunk.offset * columns_padded + begin_;
  // Rows and columns are of one set whenever the row side is read.
  p.row_v = symmetric ? v_rows + chunk.offset * rows_padded + row : nullptr;
  p.v_stride = columns_padded;
  p.row_y = y_rows + chunk.offset * rows_padded + row;
  p.y_stride = rows_padded;
  p.column_y = symmetric ? partial_.data() + chunk.offset * max_columns_ : nullptr;
  p.column_y_stride = max_columns_;
  return p;
}

template <class T>
void StripMultiplier<T>::multiply(const T* strip, Index row, Index rows, bool symmetric) {
  for (const auto& chunk : chunks_) {
    auto p = few_product(chunk, strip, row, rows, symmetric);
    if (!chunk.many) {
      kernels_.multiply_few(p);
      continue;
    }
    p.v_stride = p.y_stride = p.column_y_stride = chunk.width;
    for (Index lane = 0; lane < chunk.width; lane += kernels_.lanes) {
      p.column_v = v_columns + chunk.offset * columns_padded + begin_ * chunk.width + lane;
      if (symmetric) {
        p.row_v = v_rows + chunk.offset * rows_padded + row * chunk.width + lane;
        p.column_y = partial_.data() + chunk.offset * max_columns_ + lane;
      }
      p.row_y = y_rows + chunk.offset * rows_padded + row * chunk.width + lane;
      kernels_.multiply_many(p);
    }
  }
}

template <class T>
void StripMultiplier<T>::flush() {
  for (const auto& chunk : chunks_) {
    double* y = y_columns + chunk.offset * columns_padded;
    T* partial = partial_.data() + chunk.offset * max_columns_;
    if (chunk.many) {
      kernels_.flush(partial, y + begin_ * chunk.width, count_ * chunk.width);
      continue;
    }
    for (Index c = 0; c < chunk.width; ++c)
      kernels_.flush(partial + c * max_columns_, y + c * columns_padded + begin_, count_);
  }
}

template class StripMultiplier<float>;
template class StripMultiplier<double>;

}  // namespace mercer::operators::detail
