// Packs of numbers with the operators and functions that the profiles are written in, and the two
// functions that decide the speed of a product: 2^x and the square root.
//   exp2: magic-number rounding, minimax polynomial on [-1/2, 1/2], scaling through the exponent
//         bits. Error: 1.6 ulp (float, degree 5), 1 ulp (double, degree 11). Results below the
//         normal range are 0.
//   negative_root: reciprocal estimate and Newton steps, faster than the square root unit.
// Included once per instruction set.

#if defined(MERCER_OPERATORS_SIMD_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MERCER_OPERATORS_SIMD_MATH_INL
#undef MERCER_OPERATORS_SIMD_MATH_INL
#else
#define MERCER_OPERATORS_SIMD_MATH_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "mercer/kernels/leaf_parts.hpp"

HWY_BEFORE_NAMESPACE();
namespace mercer::operators::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Lane>
struct Pack {
  using D = hn::ScalableTag<Lane>;
  using V = hn::Vec<D>;
  V v;

  Pack() = default;
  HWY_INLINE explicit Pack(V value) : v(value) {}
  HWY_INLINE explicit Pack(double value) : v(hn::Set(D(), static_cast<Lane>(value))) {}
};

#define MERCER_PACK  \
  template <class L> \
  HWY_INLINE Pack<L>
MERCER_PACK operator+(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Add(a.v, b.v)); }
MERCER_PACK operator-(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Sub(a.v, b.v)); }
MERCER_PACK operator*(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Mul(a.v, b.v)); }
MERCER_PACK operator/(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Div(a.v, b.v)); }
MERCER_PACK max(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Max(a.v, b.v)); }
MERCER_PACK min(Pack<L> a, Pack<L> b) { return Pack<L>(hn::Min(a.v, b.v)); }
MERCER_PACK mul_add(Pack<L> a, Pack<L> b, Pack<L> c) { return Pack<L>(hn::MulAdd(a.v, b.v, c.v)); }
/// c - a b.
MERCER_PACK neg_mul_add(Pack<L> a, Pack<L> b, Pack<L> c) {
  return Pack<L>(hn::NegMulAdd(a.v, b.v, c.v));
}
#undef MERCER_PACK

template <class L>
HWY_INLINE Pack<L> load(const L* from) {
  return Pack<L>(hn::LoadU(hn::ScalableTag<L>(), from));
}
template <class L>
HWY_INLINE void store(Pack<L> value, L* to) {
  hn::StoreU(value.v, hn::ScalableTag<L>(), to);
}
template <class L>
HWY_INLINE L sum_of_lanes(Pack<L> value) {
  const hn::ScalableTag<L> d;
  return hn::GetLane(hn::SumOfLanes(d, value.v));
}

// x -> 2^x for x <= 127. x = n + f; adding a large constant rounds x to n and leaves n + bias in
// the low bits, which shifted become the exponent of 2^n (or 0 when n + bias = 0).
HWY_INLINE Pack<float> exp2(Pack<float> x) {
  using P = Pack<float>;
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const P magic(12582912.0 + 127.0);
  x = max(x, P(-127.0));
  const P t = x + magic;
  const P f = x - (t - magic);
  const P power(hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, t.v))));
  P p = mul_add(P(0.0013264728769829016), f, P(0.009671513183254876));
  p = mul_add(p, f, P(0.05550733744476566));
  p = mul_add(p, f, P(0.24022242077087963));
  p = mul_add(p, f, P(0.6931469775951135));
  p = mul_add(p, f, P(1.0));
  return p * power;
}

HWY_INLINE Pack<double> exp2(Pack<double> x) {
  using P = Pack<double>;
  const hn::ScalableTag<double> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const P magic(6755399441055744.0 + 1023.0);
  x = max(x, P(-1023.0));
  const P t = x + magic;
  const P f = x - (t - magic);
  const P power(hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, t.v))));
  P p = mul_add(P(4.435280703192545995e-10), f, P(7.074105579830534106e-09));
  p = mul_add(p, f, P(1.017819803537147761e-07));
  p = mul_add(p, f, P(1.321543308990612598e-06));
  p = mul_add(p, f, P(1.525273348995556024e-05));
  p = mul_add(p, f, P(0.0001540353046251390632));
  p = mul_add(p, f, P(0.001333355814678995532));
  p = mul_add(p, f, P(0.009618129107588335377));
  p = mul_add(p, f, P(0.05550410866481992472));
  p = mul_add(p, f, P(0.2402265069591015545));
  p = mul_add(p, f, P(0.6931471805599452862));
  p = mul_add(p, f, P(1.0));
  return p * power;
}

/// -sqrt(-x) for x <= 0 (or just above 0, by rounding). The estimate has 12 or 14 bits; with it
/// y = 1/sqrt(-x), a Newton step for n = x y is n (1 + (1 + n y)/2).
HWY_INLINE Pack<float> negative_root(Pack<float> x) {
  using P = Pack<float>;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  x = min(x, P(-1e-30));
  const P y(hn::ApproximateReciprocalSqrt(hn::Neg(x.v)));
  const P n = x * y;
  return mul_add(n * P(0.5), mul_add(n, y, P(1.0)), n);
#else
  return P(0.0) - P(hn::Sqrt(max(P(0.0) - x, P(0.0)).v));
#endif
}

HWY_INLINE Pack<double> negative_root(Pack<double> x) {
  using P = Pack<double>;
#if HWY_TARGET == HWY_AVX3
  // 14 bits, then 28, then all.
  x = min(x, P(-1e-290));
  const P y(P::V{_mm512_rsqrt14_pd(hn::Neg(x.v).raw)});
  P n = x * y;
  P h = y * P(0.5);
  const P e = mul_add(n, h, P(0.5));
  n = mul_add(n, e, n);
  h = mul_add(h, e, h);
  return mul_add(mul_add(n, n, x), h, n);
#else
  return P(0.0) - P(hn::Sqrt(max(P(0.0) - x, P(0.0)).v));
#endif
}

template <class L>
HWY_INLINE Pack<L> sqrt(Pack<L> x) {
  return Pack<L>(hn::Sqrt(x.v));
}

template <class L>
HWY_INLINE Pack<L> exp(Pack<L> x) {
  return exp2(x * Pack<L>(1.4426950408889634074));
}

template <class L>
HWY_INLINE Pack<L> log1p(Pack<L> x) {
  return Pack<L>(hn::Log1p(hn::ScalableTag<L>(), x.v));
}

/// By squaring; the exponent is at least 0.
template <class L>
HWY_INLINE Pack<L> pow_int(Pack<L> base, int exponent) {
  Pack<L> result(1.0);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}

#include "mercer/kernels/leaves-inl.hpp"

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace mercer::operators::simd
HWY_AFTER_NAMESPACE();

#endif  // toggle
