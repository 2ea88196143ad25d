// Strips of kernel values: features -> acc -> profile. Included once per instruction set.

#if defined(MERCER_OPERATORS_SIMD_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MERCER_OPERATORS_SIMD_TILES_INL
#undef MERCER_OPERATORS_SIMD_TILES_INL
#else
#define MERCER_OPERATORS_SIMD_TILES_INL
#endif

#include "mercer/operators/simd/math-inl.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace mercer::operators::simd {
namespace HWY_NAMESPACE {

/// Long sums of features are cut into pieces of this many, which bounds the rounding error of d
/// terms by that of 64 plus that of d/64, and keeps a piece of the panel in cache.
inline constexpr Index kFeatureChunk = 64;

// Squares of this, summed over any sensible number of features, are finite.
template <class T>
inline constexpr double kLargestFeature = sizeof(T) == 4 ? 1e15 : 1e150;

template <class T>
HWY_INLINE Pack<T> exact_difference(const LeafPanel<T>& leaf, Pack<T> difference, Index f) {
  const Pack<T> limit(kLargestFeature<T>);
  const Pack<T> scale(hn::Set(hn::ScalableTag<T>(), leaf.feature_scales[f]));
  return max(min(difference * scale, limit), Pack<T>(0.0) - limit);
}

// R rows (4 packed, or one of them) times G vectors of columns, features first .. last.
template <class T, int R, int G, Form F>
HWY_INLINE void add_features(const LeafPanel<T>& leaf, const T* HWY_RESTRICT rows,
                             const T* HWY_RESTRICT columns, Index first, Index last,
                             Pack<T> (&acc)[R][G]) {
  const Index stride = leaf.column_stride;
  const Index lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  for (Index f = first; f < last; ++f) {
    Pack<T> b[G];
    for (int g = 0; g < G; ++g) b[g] = load(columns + f * stride + g * lanes);
    for (int r = 0; r < R; ++r) {
      const Pack<T> a(hn::Set(hn::ScalableTag<T>(), rows[f * kPackedRows + r]));
      for (int g = 0; g < G; ++g) {
        if constexpr (F != Form::dot) {
          Pack<T> difference = a - b[g];
          if constexpr (F == Form::exact) difference = exact_difference(leaf, difference, f);
          acc[r][g] = neg_mul_add(difference, difference, acc[r][g]);
        } else {
          acc[r][g] = mul_add(a, b[g], acc[r][g]);
        }
      }
    }
  }
}

// One pack of rows against all columns, one chunk of features; later chunks add to what is there.
template <class T, int R, Form F>
HWY_INLINE void accumulate_rows(const LeafPanel<T>& leaf, const T* rows, const T* row_half_norms,
                                Index first, Index last, Index columns, T* HWY_RESTRICT out) {
  constexpr int G = R == 1 ? 4 : 2;
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index j = 0; j < columns; j += G * lanes) {
    Pack<T> acc[R][G];
    for (int r = 0; r < R; ++r)
      for (int g = 0; g < G; ++g) {
        acc[r][g] = Pack<T>(hn::Zero(d));
        if (F == Form::dot && first == 0 && row_half_norms != nullptr)
          acc[r][g] =
              Pack<T>(hn::Set(d, row_half_norms[r])) + load(leaf.column_half_norms + j + g * lanes);
      }
    add_features<T, R, G, F>(leaf, rows, leaf.columns + j, first, last, acc);
    for (int r = 0; r < R; ++r)
      for (int g = 0; g < G; ++g) {
        T* to = out + r * columns + j + g * lanes;
        store(first == 0 ? acc[r][g] : acc[r][g] + load(to), to);
      }
  }
}

template <class T, Form F>
void accumulate_strip(const LeafPanel<T>& leaf, Index first_row, Index rows, Index columns,
                      T* acc) {
  const bool norms = F == Form::dot && leaf.row_half_norms != nullptr;
  for (Index i = 0; i < rows;) {
    const Index row = first_row + i;
    const T* packed =
        leaf.rows + (row / kPackedRows) * kPackedRows * leaf.features + row % kPackedRows;
    const T* half_norms = norms ? leaf.row_half_norms + row : nullptr;
    const bool whole = row % kPackedRows == 0 && i + kPackedRows <= rows;
    Index first = 0;
    do {
      const Index last = HWY_MIN(leaf.features, first + kFeatureChunk);
      if (whole) {
        accumulate_rows<T, kPackedRows, F>(leaf, packed, half_norms, first, last, columns,
                                           acc + i * columns);
      } else {
        accumulate_rows<T, 1, F>(leaf, packed, half_norms, first, last, columns, acc + i * columns);
      }
      first = last;
    } while (first < leaf.features);
    i += whole ? kPackedRows : 1;
  }
}

template <class T>
void accumulate(const LeafPanel<T>& leaf, Index first_row, Index rows, Index columns, T* acc) {
  switch (leaf.form) {
    case Form::dot:
      return accumulate_strip<T, Form::dot>(leaf, first_row, rows, columns, acc);
    case Form::direct:
      return accumulate_strip<T, Form::direct>(leaf, first_row, rows, columns, acc);
    case Form::exact:
      return accumulate_strip<T, Form::exact>(leaf, first_row, rows, columns, acc);
  }
}

// Value of a leaf from acc: -gain^2 r^2/2 in the distance family, s in the dot family. The kernels
// that matter most have features scaled so that acc is the exponent of 2, or its square.
template <class Leaf>
struct LeafValue {
  template <class T>
  static HWY_INLINE Pack<T> value(Pack<T> acc, kernels::OwnNumbers own) {
    if constexpr (requires { Leaf::from_acc(acc); }) {
      return Leaf::from_acc(acc);
    } else if constexpr (Leaf::family == kernels::Family::distance) {
      return Leaf::profile(max(acc * Pack<T>(-2.0), Pack<T>(0.0)), own);
    } else {
      return Leaf::profile(acc, own);
    }
  }
};
struct Identity {
  template <class T>
  static HWY_INLINE Pack<T> value(Pack<T> acc, kernels::OwnNumbers) {
    return acc;
  }
};

template <class T, class Value>
void write_values(kernels::OwnNumbers own, double factor, Write write, const T* acc, T* out,
                  Index count) {
  const Index lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  const Pack<T> scale(factor);
  if (write == Write::store && factor == 1.0) {
    for (Index k = 0; k < count; k += 2 * lanes) {
      const Pack<T> first = Value::value(load(acc + k), own);
      const Pack<T> second = Value::value(load(acc + k + lanes), own);
      store(first, out + k);
      store(second, out + k + lanes);
    }
  } else if (write == Write::store) {
    for (Index k = 0; k < count; k += lanes)
      store(Value::value(load(acc + k), own) * scale, out + k);
  } else if (write == Write::add) {
    for (Index k = 0; k < count; k += lanes)
      store(mul_add(Value::value(load(acc + k), own), scale, load(out + k)), out + k);
  } else {
    for (Index k = 0; k < count; k += lanes)
      store(Value::value(load(acc + k), own) * scale * load(out + k), out + k);
  }
}

// One function for each leaf of the list, in its order.
template <class T, class List>
struct ProfileTable;
template <class T, class... Leaves>
struct ProfileTable<T, LeafList<Leaves...>> {
  using Function = void (*)(kernels::OwnNumbers, double, Write, const T*, T*, Index);
  static constexpr Function functions[] = {&write_values<T, LeafValue<Leaves>>...};
};

template <class T>
void profile(const ProfileSpec& spec, double factor, Write write, const T* acc, T* out,
             Index count) {
  ProfileTable<T, AllLeaves>::functions[static_cast<std::size_t>(spec.kind)](
      spec.own, factor, write, acc, out, count);
}

template <class Leaf>
constexpr double gain_squared_of() {
  if constexpr (requires { Leaf::gain_squared; }) {
    return Leaf::gain_squared;
  } else {
    return 1;
  }
}

template <class... Leaves>
double gain_squared(std::size_t place, LeafList<Leaves...>) {
  constexpr double squares[] = {gain_squared_of<Leaves>()...};
  return squares[place];
}

inline double gain(kernels::LeafKind kind) {
  return std::sqrt(gain_squared(static_cast<std::size_t>(kind), AllLeaves{}));
}

template <class T>
void combine(double factor, Write write, const T* in, T* out, Index count) {
  write_values<T, Identity>({}, factor, write, in, out, count);
}

// Rounds to T, stores, and gives back what was stored.
HWY_INLINE Pack<double> store_rounded(Pack<double> x, float* to) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto rounded = hn::DemoteTo(narrow, x.v);
  hn::StoreU(rounded, narrow, to);
  return Pack<double>(hn::PromoteTo(d, rounded));
}
HWY_INLINE Pack<double> store_rounded(Pack<double> x, double* to) {
  store(x, to);
  return x;
}

// Centred, scaled and rounded features, and their norms summed in double.
template <class T>
void centre(const double* source, Index stride, Index features, const double* middle,
            const double* scale, Index count, T* out, Index out_stride, T* half_norms,
            double* norms) {
  using P = Pack<double>;
  const Index lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<double>()));
  const P limit(kLargestFeature<T>);
  const P negative_limit(-kLargestFeature<T>);
  const Index whole = count - count % lanes;
  for (Index j = 0; j < count; ++j) norms[j] = 0;
  for (Index f = 0; f < features; ++f) {
    const double* from = source + f * stride;
    T* to = out + f * out_stride;
    const P m(middle[f]);
    const P s(scale[f]);
    for (Index j = 0; j < whole; j += lanes) {
      const P x = max(min((load(from + j) - m) * s, limit), negative_limit);
      const P rounded = store_rounded(x, to + j);
      store(mul_add(rounded, rounded, load(norms + j)), norms + j);
    }
    for (Index j = whole; j < count; ++j) {
      const double x = (from[j] - middle[f]) * scale[f];
      to[j] = static_cast<T>(HWY_MAX(HWY_MIN(x, kLargestFeature<T>), -kLargestFeature<T>));
      norms[j] += static_cast<double>(to[j]) * static_cast<double>(to[j]);
    }
  }
  for (Index j = 0; j < count; ++j) half_norms[j] = static_cast<T>(-0.5 * norms[j]);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace mercer::operators::simd
HWY_AFTER_NAMESPACE();

#endif  // toggle
