// Compiled once per instruction set by Highway; see targets.hpp.
#include "mercer/operators/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mercer/operators/simd/tile_kernels.cpp"
#include <cmath>
#include <string>
#include <vector>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mercer/core/timer.hpp"
#include "mercer/operators/simd/multiply-inl.hpp"
#include "mercer/operators/simd/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mercer::operators::simd {
namespace HWY_NAMESPACE {

template <class T>
const TileKernels<T>* table() {
  static const TileKernels<T> kernels = {&gain,
                                         &centre<T>,
                                         &accumulate<T>,
                                         &profile<T>,
                                         &combine<T>,
                                         &multiply_few<T>,
                                         &multiply_many<T>,
                                         &flush<T>,
                                         static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()))};
  return &kernels;
}
const TileKernels<float>* float_table() { return table<float>(); }
const TileKernels<double>* double_table() { return table<double>(); }

// Twelve independent chains: enough to hide the latency of two units.
template <class T>
double fma_rounds(Index rounds) {
  constexpr int kChains = 12;
  const hn::ScalableTag<T> d;
  Pack<T> x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = Pack<T>(1.0 + 0.01 * c);
  const Pack<T> a(0.999);
  const Pack<T> b(0.001);
  for (Index k = 0; k < rounds; ++k)
    for (int c = 0; c < kChains; ++c) x[c] = mul_add(x[c], a, b);
  T sum = 0;
  for (int c = 0; c < kChains; ++c) sum += sum_of_lanes(x[c]);
  // The sum is used, so that the loop is not optimised away; it never is exactly 0.
  const double work = static_cast<double>(rounds) * kChains;
  return sum == T(0) ? 0 : work * static_cast<double>(hn::Lanes(d));
}
double float_fma_rounds(Index rounds) { return fma_rounds<float>(rounds); }
double double_fma_rounds(Index rounds) { return fma_rounds<double>(rounds); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace mercer::operators::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "mercer/core/error.hpp"

namespace mercer::operators::simd {

HWY_EXPORT(float_table);
HWY_EXPORT(double_table);
HWY_EXPORT(float_fma_rounds);
HWY_EXPORT(double_fma_rounds);

namespace {

int64_t usable_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

// The lowest set bit is the best instruction set.
int64_t best_target() { return usable_targets() & -usable_targets(); }

template <class Rounds>
double best_rate(Rounds run, double seconds) {
  double best = 0;
  const Timer total;
  while (total.seconds() < seconds) {
    const Timer timer;
    const double work = run(20000);
    best = std::max(best, work / timer.seconds());
  }
  return best;
}

}  // namespace

const TileKernels<float>& tile_kernels(float) { return *HWY_DYNAMIC_DISPATCH(float_table)(); }
const TileKernels<double>& tile_kernels(double) { return *HWY_DYNAMIC_DISPATCH(double_table)(); }

const char* target_name() { return hwy::TargetName(best_target()); }

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void force_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  int64_t chosen = 0;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1)
    if (hwy::TargetName(rest & -rest) == name) chosen = rest & -rest;
  if (chosen == 0 && !name.empty())
    throw InvalidArgument("simd: there is no instruction set '" + name + "' here");
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

double measure_fma_rate(float, double seconds) {
  return best_rate([](Index rounds) { return HWY_DYNAMIC_DISPATCH(float_fma_rounds)(rounds); },
                   seconds);
}
double measure_fma_rate(double, double seconds) {
  return best_rate([](Index rounds) { return HWY_DYNAMIC_DISPATCH(double_fma_rounds)(rounds); },
                   seconds);
}

}  // namespace mercer::operators::simd
#endif  // HWY_ONCE
