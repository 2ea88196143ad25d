// Rows of a matrix that equal an earlier one: repeated measurements, or repeated records.
//   Cost: one pass to hash and one to look up, O(N d); 24 bytes a row on the way.
#pragma once

#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

/// For every row the first row with the same values, itself when there is none before; -0 equals 0.
std::vector<Index> first_equal_rows(const Matrix& values);

}  // namespace mercer::data
MERCER_API_END
