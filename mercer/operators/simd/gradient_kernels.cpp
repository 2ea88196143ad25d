// Sums over strips for derivatives in hyperparameters. Compiled once per instruction set by
// Highway; see targets.hpp.
#include "mercer/operators/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mercer/operators/simd/gradient_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mercer/operators/simd/math-inl.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace mercer::operators::simd {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE Index lanes_of() {
  return static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
}

// As many as a pack of doubles has.
HWY_INLINE Pack<double> load_wide(const double* from) { return load(from); }
HWY_INLINE Pack<double> load_wide(const float* from) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  return Pack<double>(hn::PromoteTo(d, hn::LoadU(narrow, from)));
}

template <class T>
void weights(const T* u_row, const T* v_row, const T* u_column, const T* v_column, Index stride,
             Index vectors, bool symmetric, Index rows, Index columns, T* out) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  for (Index i = 0; i < rows; ++i) {
    T* HWY_RESTRICT to = out + i * columns;
    for (Index r = 0; r < vectors; ++r) {
      const P u(u_row[r * stride + i]);
      const P v(symmetric ? v_row[r * stride + i] : T(0));
      for (Index j = 0; j < columns; j += lanes) {
        P sum = u * load(v_column + r * stride + j);
        if (symmetric) sum = mul_add(v, load(u_column + r * stride + j), sum);
        store(r == 0 ? sum : sum + load(to + j), to + j);
      }
    }
  }
}

template <class T, class Leaf>
void evaluate_leaf(kernels::OwnNumbers own, const T* acc, T* value, T* slope, T* shape_slope,
                   Index count) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  if constexpr (Leaf::family == kernels::Family::constant) {
    for (Index k = 0; k < count; k += lanes) store(Leaf::profile(P(0.0), own), value + k);
  } else {
    for (Index k = 0; k < count; k += lanes) {
      P x = load(acc + k);
      if constexpr (Leaf::family == kernels::Family::distance) x = max(x * P(-2.0), P(0.0));
      const P derivative = Leaf::slope(x, own);
      store(Leaf::profile(x, own), value + k);
      store(derivative, slope + k);
      if constexpr (requires { Leaf::shape_slope(x, derivative, own); })
        store(Leaf::shape_slope(x, derivative, own), shape_slope + k);
    }
  }
}

// One function for each leaf of the list, in its order.
template <class T, class... Leaves>
void evaluate_any(const ProfileSpec& spec, const T* acc, T* value, T* slope, T* shape_slope,
                  Index count, LeafList<Leaves...>) {
  using Function = void (*)(kernels::OwnNumbers, const T*, T*, T*, T*, Index);
  static constexpr Function functions[] = {&evaluate_leaf<T, Leaves>...};
  functions[static_cast<std::size_t>(spec.kind)](spec.own, acc, value, slope, shape_slope, count);
}

template <class T>
void evaluate(const ProfileSpec& spec, const T* acc, T* value, T* slope, T* shape_slope,
              Index count) {
  evaluate_any(spec, acc, value, slope, shape_slope, count, AllLeaves{});
}

template <class T>
double dot(const T* a, const T* b, Index count) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  P sums[4] = {P(0.0), P(0.0), P(0.0), P(0.0)};
  const Index step = 4 * lanes;
  for (Index k = 0; k < count; k += step)
    for (int c = 0; c < 4; ++c)
      sums[c] = mul_add(load(a + k + c * lanes), load(b + k + c * lanes), sums[c]);
  return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <class T>
HWY_INLINE T row_feature(const SlopeStrip<T>& s, Index r, Index f) {
  const Index row = s.first_row + r;
  return s.panel
      .rows[((row / kPackedRows) * s.panel.features + f) * kPackedRows + row % kPackedRows];
}

template <class T>
void squared_differences(const SlopeStrip<T>& s, double* by_feature) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  for (Index f = 0; f < s.panel.features; ++f) {
    const T* columns = s.panel.columns + f * s.panel.column_stride;
    const bool exact = s.panel.form == Form::exact;
    const P scale(exact ? s.panel.feature_scales[f] : T(1));
    P sums[2] = {P(0.0), P(0.0)};
    for (Index r = 0; r < s.rows; ++r) {
      const P a(row_feature(s, r, f));
      const T* slope = s.slope + r * s.columns;
      for (Index j = 0; j < s.columns; j += 2 * lanes)
        for (int c = 0; c < 2; ++c) {
          const P difference = (a - load(columns + j + c * lanes)) * scale;
          sums[c] = mul_add(load(slope + j + c * lanes) * difference, difference, sums[c]);
        }
    }
    by_feature[f] += sum_of_lanes(sums[0] + sums[1]);
  }
}

template <int F, class T>
HWY_INLINE void moments_of_four_rows(const SlopeStrip<T>& s, Index r, Index f, double* out) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  P sums[4][F];
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < F; ++c) sums[k][c] = P(0.0);
  const T* slope = s.slope + r * s.columns;
  const T* columns = s.panel.columns + f * s.panel.column_stride;
  for (Index j = 0; j < s.columns; j += lanes) {
    P b[F];
    for (int c = 0; c < F; ++c) b[c] = load(columns + c * s.panel.column_stride + j);
    for (int k = 0; k < 4; ++k) {
      const P value = load(slope + k * s.columns + j);
      for (int c = 0; c < F; ++c) sums[k][c] = mul_add(value, b[c], sums[k][c]);
    }
  }
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < F; ++c) out[(r + k) * s.panel.features + f + c] = sum_of_lanes(sums[k][c]);
}

template <class T>
void moments(const SlopeStrip<T>& s, double* out, double* row_sums, T* column_sums) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  for (Index r = 0; r < s.rows; r += 4) {
    Index f = 0;
    for (; f + 2 <= s.panel.features; f += 2) moments_of_four_rows<2>(s, r, f, out);
    if (f < s.panel.features) moments_of_four_rows<1>(s, r, f, out);
  }
  for (Index r = 0; r < s.rows; ++r) {
    P sum(0.0);
    for (Index j = 0; j < s.columns; j += lanes) {
      const P value = load(s.slope + r * s.columns + j);
      sum = sum + value;
      store(load(column_sums + j) + value, column_sums + j);
    }
    row_sums[r] = sum_of_lanes(sum);
  }
}

template <int F, class T>
HWY_INLINE void differences_of_four_rows(const SlopeStrip<T>& s, Index r, Index f, double* out) {
  using P = Pack<T>;
  const Index lanes = lanes_of<T>();
  P sums[4][F];
  P a[4][F];
  P scale[F];
  for (int c = 0; c < F; ++c) {
    scale[c] = P(s.panel.form == Form::exact ? s.panel.feature_scales[f + c] : T(1));
    for (int k = 0; k < 4; ++k) {
      sums[k][c] = P(0.0);
      a[k][c] = P(row_feature(s, r + k, f + c));
    }
  }
  const T* slope = s.slope + r * s.columns;
  const T* columns = s.panel.columns + f * s.panel.column_stride;
  for (Index j = 0; j < s.columns; j += lanes) {
    P b[F];
    for (int c = 0; c < F; ++c) b[c] = load(columns + c * s.panel.column_stride + j);
    for (int k = 0; k < 4; ++k) {
      const P value = load(slope + k * s.columns + j);
      for (int c = 0; c < F; ++c) sums[k][c] = mul_add(value, a[k][c] - b[c], sums[k][c]);
    }
  }
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < F; ++c)
      out[(r + k) * s.panel.features + f + c] = sum_of_lanes(sums[k][c] * scale[c]);
}

template <class T>
void differences(const SlopeStrip<T>& s, double* out) {
  for (Index r = 0; r < s.rows; r += 4) {
    Index f = 0;
    for (; f + 2 <= s.panel.features; f += 2) differences_of_four_rows<2>(s, r, f, out);
    if (f < s.panel.features) differences_of_four_rows<1>(s, r, f, out);
  }
}

template <class T>
double period(const CircleStrip<T>& s) {
  using P = Pack<double>;
  const Index lanes = lanes_of<double>();
  double total = 0;
  for (Index c = 0; c < s.num_inputs; ++c) {
    const double* x = s.column_inputs + c * s.column_stride;
    const double* cosine = s.column_circle + c * s.column_stride;
    const double* sine = s.column_circle + (s.num_inputs + c) * s.column_stride;
    P sum(0.0);
    for (Index r = 0; r < s.rows; ++r) {
      const P x_row(s.row_inputs[c * s.row_stride + r]);
      const P cosine_row(s.row_circle[c * s.row_stride + r]);
      const P sine_row(s.row_circle[(s.num_inputs + c) * s.row_stride + r]);
      for (Index j = 0; j < s.columns; j += lanes) {
        const P sine_of_difference =
            neg_mul_add(cosine_row, load(sine + j), sine_row * load(cosine + j));
        sum = mul_add(load_wide(s.slope + r * s.columns + j) * (x_row - load(x + j)),
                      sine_of_difference, sum);
      }
    }
    total += s.scale[c] * s.scale[c] * sum_of_lanes(sum);
  }
  return total;
}

template <class T>
const GradientKernels<T>* table() {
  static const GradientKernels<T> kernels = {
      &weights<T>, &evaluate<T>,    &dot<T>,   &squared_differences<T>,
      &moments<T>, &differences<T>, &period<T>};
  return &kernels;
}
const GradientKernels<float>* float_gradient_table() { return table<float>(); }
const GradientKernels<double>* double_gradient_table() { return table<double>(); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace mercer::operators::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mercer::operators::simd {

HWY_EXPORT(float_gradient_table);
HWY_EXPORT(double_gradient_table);
const GradientKernels<float>& gradient_kernels(float) {
  obey_environment();
  return *HWY_DYNAMIC_DISPATCH(float_gradient_table)();
}
const GradientKernels<double>& gradient_kernels(double) {
  obey_environment();
  return *HWY_DYNAMIC_DISPATCH(double_gradient_table)();
}

}  // namespace mercer::operators::simd
#endif  // HWY_ONCE
