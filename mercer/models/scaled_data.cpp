#include "mercer/models/scaled_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/models/input_names.hpp"

namespace mercer::models {
namespace {

void check_target(const data::Dataset& data, const Vector& target) {
  const double low = target.minCoeff();
  const double high = target.maxCoeff();
  if (data.schema.log_target && data.noise.variance.size() > 0)
    throw InvalidArgument(
        "`noise_column` has variances of the target, which are none of its logarithm; leave it or "
        "`log_target` out");
  if (low == high)
    throw DataError(fmt::format(
        "the target '{}' has the same value {} in all {} rows to learn from; there is nothing to "
        "learn",
        data.schema.learned_name(), low, data.size()));
  // Variances are squares: with a margin for sums of them and for shares of them.
  constexpr double largest = 1e140;
  constexpr double smallest_range = 1e-140;
  if (std::max(std::abs(low), std::abs(high)) > largest || high - low < smallest_range)
    throw DataError(fmt::format(
        "the target '{}' runs from {} to {}, too {} for its variance to be a number in double "
        "precision; use other units",
        data.schema.learned_name(), low, high, high - low < smallest_range ? "narrow" : "large"));
}

// Readers check what they read; arrays come as they are.
void check_noise(const Vector& values, data::ColumnRole role, Index rows) {
  if (values.size() != 0 && values.size() != rows)
    throw DimensionMismatch(fmt::format("{}: values", to_string(role)), values.size(), "rows",
                            rows);
  for (Index i = 0; i < values.size(); ++i)
    if (const auto why = data::fault(role, values(i)); !why.empty())
      throw DataError(fmt::format("row {}: {}", i + 1, why));
}

double column_sd(ConstVectorView v) {
  const double mean = v.mean();
  return std::sqrt((v.array() - mean).square().mean());
}

}  // namespace

void check_noise_columns(const data::NoiseColumns& columns, Index rows) {
  check_noise(columns.variance, data::ColumnRole::noise, rows);
  check_noise(columns.count, data::ColumnRole::count, rows);
}

ScaledData scale(const data::Dataset& data, bool standardize) {
  Vector y = data.learned_target();
  check_target(data, y);
  ScaledData out;
  out.scaling =
      standardize ? data::fit_scaling(data.inputs, y) : data::Scaling::identity(data.inputs.cols());
  out.data.x = data.inputs;
  out.scaling.scale_inputs(out.data.x);
  out.scaling.scale_target(y);
  out.data.y = y;
  check_noise_columns(data.noise, data.size());
  out.data.noise = row_noise(data.noise, out.scaling);
  return out;
}

inference::RowNoise row_noise(const data::NoiseColumns& columns, const data::Scaling& scaling) {
  inference::RowNoise noise;
  noise.weight = columns.count;
  if (columns.variance.size() > 0) noise.known = columns.variance / std::pow(scaling.target_sd, 2);
  return noise;
}

kernels::Kernel start_kernel(const MethodOptions& options, const data::Schema& schema,
                             ConstMatrixView x, double target_variance) {
  const Index d = x.cols();
  auto kernel = kernels::Kernel::parse(options.kernel, input_names(schema));
  // On standardised data: v = 1, l = sqrt(d), at which typical pairs are correlated.
  std::vector<double> spread(static_cast<std::size_t>(d));
  for (Index c = 0; c < d; ++c)
    spread[static_cast<std::size_t>(c)] =
        std::sqrt(static_cast<double>(d)) * std::max(column_sd(x.col(c)), 1e-150);
  kernel.scale_start_values(target_variance, spread);
  if (options.signal_variance) kernel.set_all_variances(*options.signal_variance);
  if (!options.lengthscale.empty()) kernel.set_lengthscales(options.lengthscale);
  return kernel;
}

inference::Problem start_problem(const MethodOptions& options, const data::Schema& schema,
                                 ConstMatrixView x, ConstVectorView y) {
  const double target_variance = std::max(std::pow(column_sd(y), 2), 1e-300);
  return {start_kernel(options, schema, x, target_variance),
          options.noise.value_or(0.1 * target_variance), inference::mean_kind(options.mean)};
}

}  // namespace mercer::models
