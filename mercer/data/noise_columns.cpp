#include "mercer/data/noise_columns.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/data/split.hpp"

namespace mercer::data {

std::string_view to_string(ColumnRole role) {
  switch (role) {
    case ColumnRole::target:
      return "target";
    case ColumnRole::input:
      return "input";
    case ColumnRole::noise:
      return "noise column";
    case ColumnRole::count:
      return "count column";
    case ColumnRole::fold:
      return "fold column";
  }
  return "unknown";
}

std::string fault(ColumnRole role, double value) {
  if (!is_noise(role)) return "";
  const bool count = role == ColumnRole::count;
  if (std::isnan(value))
    return count ? "the count of this row is missing" : "the noise variance of this row is missing";
  if (count ? value > 0 : value >= 0) return "";
  return count ? fmt::format("{} is no count of observations; it must be positive", value)
               : fmt::format("{} is no noise variance; it must be zero or positive", value);
}

std::string log_fault(double target) {
  if (target > 0) return "";
  return fmt::format(
      "the target is {}, which has no logarithm: with `log_target` all must be positive; correct "
      "the row, add a constant to the column, or leave `log_target` out",
      target);
}

NoiseColumns take_rows(const NoiseColumns& columns, std::span<const Index> rows) {
  const auto part = [&](const Vector& values) {
    return values.size() == 0 ? Vector() : take_rows(ConstVectorView(values), rows);
  };
  return {part(columns.variance), part(columns.count)};
}

}  // namespace mercer::data
