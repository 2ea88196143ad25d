#include "mercer/inference/speeds.hpp"

#include <algorithm>

namespace mercer::inference {
namespace {

using operators::Precision;

// Products of tall matrices run a little slower than a factorisation, vectors, sparse rows and
// small matrices at perhaps a quarter of its speed.
constexpr double kTallHandicap = 1.3;
constexpr double kThinHandicap = 4;
// Products to build something come in blocks of columns, which share the kernel values.
constexpr double kShareInBlocks = 0.2;

}  // namespace

Speeds nominal_speeds(const kernels::Kernel& kernel, Index d) {
  const auto leaves = static_cast<double>(std::max<Index>(1, kernel.num_leaves()));
  const auto inputs = static_cast<double>(d);
  Speeds speeds;
  speeds.pair_seconds_single = leaves * (inputs + 10) / 2e11;
  speeds.pair_seconds_double = leaves * (inputs + 16) / 1.2e11;
  speeds.column_seconds_single = 8e-12;
  speeds.column_seconds_double = 1.6e-11;
  speeds.flops = 1.2e11;
  speeds.bandwidth = 2e10;
  return speeds;
}

double product_seconds(const Speeds& speeds, Index n, std::string_view op, SolvePrecision precision,
                       Index columns) {
  return operators::operators().find(op).product_seconds(speeds, n, columns,
                                                         product_precision(precision));
}

double operator_build_seconds(const Speeds& speeds, Index n, std::string_view op,
                              SolvePrecision precision) {
  const auto p = product_precision(precision);
  double seconds = operators::operators().find(op).build_seconds(speeds, n, p);
  if (p == Precision::float32)
    seconds += operators::default_operator().build_seconds(speeds, n, Precision::float64);
  return seconds;
}

double operator_bytes(Index n, Index d, Index columns, std::string_view op,
                      SolvePrecision precision) {
  const auto& info = operators::operators().find(op);
  if (precision == SolvePrecision::float64) return info.bytes(n, d, columns, Precision::float64);
  // The two do not multiply at the same time.
  return operators::default_operator().bytes(n, d, columns, Precision::float64) +
         info.bytes(n, d, 0, Precision::float32);
}

double build_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product) {
  // Values for one use cost more than those inside a product, which come by the tile.
  return (kTallHandicap * cost.build_flops + kThinHandicap * cost.thin_flops) / speeds.flops +
         2 * cost.kernel_values * speeds.pair_seconds_double +
         kShareInBlocks * cost.products * product;
}

double apply_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product,
                     Index columns) {
  return static_cast<double>(columns) *
         (kThinHandicap * cost.apply_flops / speeds.flops + cost.apply_products * product);
}

}  // namespace mercer::inference
