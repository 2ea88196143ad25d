// Compiled once per instruction set by Highway; see targets.hpp.
#include "mercer/operators/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mercer/operators/simd/tile_kernels.cpp"
#include <cmath>
#include <cstdlib>
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
int64_t best_of(int64_t targets) { return targets & -targets; }

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The usable target with this name, or 0.
int64_t target_called(const std::string& name) {
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1)
    if (hwy::TargetName(best_of(rest)) == name) return best_of(rest);
  return 0;
}

/// What MERCER_SIMD asks for; "" when it is not set.
std::string asked_by_environment() {
  const char* value = std::getenv("MERCER_SIMD");
  return value == nullptr ? "" : value;
}

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

void obey_environment() {
  static const bool obeyed = (force_target(""), true);
  static_cast<void>(obeyed);
}

const TileKernels<float>& tile_kernels(float) {
  obey_environment();
  return *HWY_DYNAMIC_DISPATCH(float_table)();
}
const TileKernels<double>& tile_kernels(double) {
  obey_environment();
  return *HWY_DYNAMIC_DISPATCH(double_table)();
}

const char* target_name() {
  obey_environment();
  return hwy::TargetName(best_of(usable_targets()));
}

std::vector<std::string> available_targets() {
  const int64_t in_use = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);  // all that the processor has
  std::vector<std::string> names;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(best_of(rest)));
  hwy::SetSupportedTargetsForTest(in_use);
  return names;
}

void force_target(const std::string& name) {
  if (!name.empty()) obey_environment();  // now, lest the first product undoes what follows
  const auto names = available_targets();
  const std::string wanted = name.empty() ? asked_by_environment() : name;
  hwy::SetSupportedTargetsForTest(0);
  const int64_t chosen = target_called(wanted);
  if (chosen == 0 && !wanted.empty())
    throw InvalidArgument("simd: this processor has no instruction set '" + wanted + "'" +
                          (name.empty() ? " that MERCER_SIMD asks for" : "") + "; it has " +
                          listed(names));
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
