// A strip of kernel values times vectors: y_rows += S v_columns and, by symmetry,
// y_columns += S' v_rows. Included once per instruction set.

#if defined(MERCER_OPERATORS_SIMD_MULTIPLY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MERCER_OPERATORS_SIMD_MULTIPLY_INL
#undef MERCER_OPERATORS_SIMD_MULTIPLY_INL
#else
#define MERCER_OPERATORS_SIMD_MULTIPLY_INL
#endif

#include "mercer/operators/simd/math-inl.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace mercer::operators::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
inline constexpr int kInterleavedRows = 8;  // 32 registers
#else
inline constexpr int kInterleavedRows = 4;
#endif
inline constexpr int kInterleavedColumns = 2;

// Few vectors: lanes run over columns; four rows of sums stay in registers along the panel.
template <class T, int Vectors, bool Symmetric>
HWY_INLINE void multiply_four_rows(const StripProduct<T>& p, Index i) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const T* HWY_RESTRICT strip = p.strip + i * p.columns;
  Pack<T> sums[4][Vectors];
  Pack<T> v_rows[4][Vectors];
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < Vectors; ++c) {
      sums[r][c] = Pack<T>(hn::Zero(d));
      if constexpr (Symmetric) v_rows[r][c] = Pack<T>(hn::Set(d, p.row_v[c * p.v_stride + i + r]));
    }
  for (Index j = 0; j < p.columns; j += lanes) {
    Pack<T> k[4];
    for (int r = 0; r < 4; ++r) k[r] = load(strip + r * p.columns + j);
    for (int c = 0; c < Vectors; ++c) {
      const Pack<T> v = load(p.column_v + c * p.v_stride + j);
      for (int r = 0; r < 4; ++r) sums[r][c] = mul_add(k[r], v, sums[r][c]);
      if constexpr (Symmetric) {
        T* y = p.column_y + c * p.column_y_stride + j;
        const Pack<T> upper = mul_add(k[1], v_rows[1][c], k[0] * v_rows[0][c]);
        const Pack<T> lower = mul_add(k[3], v_rows[3][c], mul_add(k[2], v_rows[2][c], load(y)));
        store(upper + lower, y);
      }
    }
  }
  for (int c = 0; c < Vectors; ++c)
    for (int r = 0; r < 4; ++r)
      p.row_y[c * p.y_stride + i + r] += static_cast<double>(sum_of_lanes(sums[r][c]));
}

template <class T, int Vectors>
void multiply_vectors(const StripProduct<T>& p) {
  for (Index i = 0; i < p.rows; i += 4) {
    if (p.column_y != nullptr) {
      multiply_four_rows<T, Vectors, true>(p, i);
    } else {
      multiply_four_rows<T, Vectors, false>(p, i);
    }
  }
}

template <class T>
void multiply_few(const StripProduct<T>& p) {
  if (p.vectors == 4) return multiply_vectors<T, 4>(p);
  if (p.vectors == 2) return multiply_vectors<T, 2>(p);
  multiply_vectors<T, 1>(p);
}

template <class T>
HWY_INLINE void flush_pack(Pack<T> value, double* y) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value.v, d, buffer);
  for (Index k = 0; k < static_cast<Index>(hn::Lanes(d)); ++k)
    y[k] += static_cast<double>(buffer[k]);
}

// Many vectors: lanes run over vectors; a kernel value is broadcast once and used twice. A few
// columns at a time, which have sums of their own.
template <class T, int Rows, bool Symmetric>
HWY_INLINE void multiply_interleaved(const StripProduct<T>& p, Index i) {
  const hn::ScalableTag<T> d;
  const T* HWY_RESTRICT strip = p.strip + i * p.columns;
  Pack<T> sums[Rows];
  Pack<T> v_rows[Rows];
  for (int r = 0; r < Rows; ++r) {
    sums[r] = Pack<T>(hn::Zero(d));
    if constexpr (Symmetric) v_rows[r] = load(p.row_v + (i + r) * p.v_stride);
  }
  for (Index j = 0; j < p.columns; j += kInterleavedColumns) {
    Pack<T> v[kInterleavedColumns];
    Pack<T> y[kInterleavedColumns];
    for (int c = 0; c < kInterleavedColumns; ++c) {
      v[c] = load(p.column_v + (j + c) * p.v_stride);
      if constexpr (Symmetric) y[c] = load(p.column_y + (j + c) * p.column_y_stride);
    }
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < kInterleavedColumns; ++c) {
        const Pack<T> k(hn::Set(d, strip[r * p.columns + j + c]));
        sums[r] = mul_add(k, v[c], sums[r]);
        if constexpr (Symmetric) y[c] = mul_add(k, v_rows[r], y[c]);
      }
    if constexpr (Symmetric)
      for (int c = 0; c < kInterleavedColumns; ++c)
        store(y[c], p.column_y + (j + c) * p.column_y_stride);
  }
  for (int r = 0; r < Rows; ++r) flush_pack(sums[r], p.row_y + (i + r) * p.y_stride);
}

template <class T, bool Symmetric>
void multiply_chunk(const StripProduct<T>& p) {
  Index i = 0;
  for (; i + kInterleavedRows <= p.rows; i += kInterleavedRows)
    multiply_interleaved<T, kInterleavedRows, Symmetric>(p, i);
  for (; i < p.rows; i += 4) multiply_interleaved<T, 4, Symmetric>(p, i);
}

template <class T>
void multiply_many(const StripProduct<T>& p) {
  if (p.column_y != nullptr) return multiply_chunk<T, true>(p);
  multiply_chunk<T, false>(p);
}

template <class T>
void flush(T* HWY_RESTRICT partial, double* HWY_RESTRICT y, Index count) {
  for (Index k = 0; k < count; ++k) y[k] += static_cast<double>(partial[k]);
  for (Index k = 0; k < count; ++k) partial[k] = 0;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace mercer::operators::simd
HWY_AFTER_NAMESPACE();

#endif  // toggle
