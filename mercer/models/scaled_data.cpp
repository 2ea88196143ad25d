#include "mercer/models/scaled_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  // Squares of extreme values overflow or vanish: those are taken in units of a power of two.
  const double largest = v.cwiseAbs().maxCoeff();
  const bool extreme = largest > 1e100 || (largest < 1e-100 && largest > 0);
  const double unit = extreme ? std::scalbn(1.0, std::ilogb(largest)) : 1.0;
  const double mean = (v / unit).mean();
  return unit * std::sqrt((v.array() / unit - mean).square().mean());
}

}  // namespace

void check_noise_columns(const data::NoiseColumns& columns, Index rows) {
  check_noise(columns.variance, data::ColumnRole::noise, rows);
  check_noise(columns.count, data::ColumnRole::count, rows);
}

data::Scaling scaling_of(const data::Dataset& data, bool standardize,
                         const std::vector<std::string>& isotropic) {
  const auto columns = isotropic_columns(isotropic, data.schema);
  if (!standardize) return data::Scaling::identity(data.inputs.cols());
  auto scaling = data::fit_scaling(data.inputs, data.learned_target());
  data::share_scale(scaling, data.inputs, columns);
  return scaling;
}

ScaledData scale(const data::Dataset& data, bool standardize,
                 const std::vector<std::string>& isotropic) {
  check_target(data, data.learned_target());
  return scale(data, scaling_of(data, standardize, isotropic));
}

ScaledData scale(const data::Dataset& data, const data::Scaling& scaling) {
  Vector y = data.learned_target();
  check_target(data, y);
  ScaledData out;
  out.scaling = scaling;
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
  if (!options.isotropic.empty() &&
      !kernel.share_lengthscale(isotropic_columns(options.isotropic, schema),
                                isotropic_names(options.isotropic, schema)))
    throw InvalidArgument(fmt::format(
        "no part of the kernel '{}' measures distances between two of the inputs that `isotropic` "
        "names ({}); use a kernel that sees them together",
        options.kernel, fmt::join(options.isotropic, ", ")));
  // On standardised data: v = 1, l = sqrt(d), at which typical pairs are correlated.
  std::vector<double> spread(static_cast<std::size_t>(d));
  // A column of one value (in a part of the data) has no spread; its scale is 1 then.
  for (Index c = 0; c < d; ++c) {
    const double sd = column_sd(x.col(c));
    spread[static_cast<std::size_t>(c)] =
        std::sqrt(static_cast<double>(d)) * (sd > 0 ? std::max(sd, 1e-150) : 1.0);
  }
  kernel.scale_start_values(target_variance, spread);
  kernel.set_given(options.lengthscale, options.signal_variance);
  return kernel;
}

inference::Problem start_problem(const MethodOptions& options, const data::Schema& schema,
                                 ConstMatrixView x, ConstVectorView y) {
  const double target_variance = std::max(std::pow(column_sd(y), 2), 1e-300);
  return {start_kernel(options, schema, x, target_variance),
          options.noise.value_or(0.1 * target_variance), inference::mean_kind(options.mean)};
}

}  // namespace mercer::models
