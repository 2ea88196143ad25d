// Columns that say how noisy each row is, and what they may hold.
//   noise column: a noise variance that is known, in squared units of the target; the learned one
//   comes on top. Count column: the row is the mean of so many observations, so that its share of
//   the learned noise variance is one over that (any positive number: a weight).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

enum class ColumnRole { target, input, noise, count, fold };
std::string_view to_string(ColumnRole role);
inline bool is_noise(ColumnRole role) {
  return role == ColumnRole::noise || role == ColumnRole::count;
}

/// Why a noise or count column cannot hold this value (NaN: it is missing); empty when it can.
std::string fault(ColumnRole role, double value);

/// Why a target has no logarithm; empty when it has one.
std::string log_fault(double target);

/// One value per row, or none where there is no such column.
struct NoiseColumns {
  Vector variance = {};
  Vector count = {};
};
NoiseColumns take_rows(const NoiseColumns& columns, std::span<const Index> rows);

}  // namespace mercer::data
MERCER_API_END
