#include "mercer/data/equal_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mercer::data {
namespace {

/// One hash per row, equal for equal rows. Some rows at a time: the hashes stay in cache.
std::vector<std::uint64_t> row_hashes(const Matrix& inputs) {
  constexpr Index some = 1024;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(inputs.rows()), 0);
  for (Index first = 0; first < inputs.rows(); first += some) {
    const Index last = std::min(first + some, inputs.rows());
    for (Index j = 0; j < inputs.cols(); ++j)
      for (Index i = first; i < last; ++i) {
        auto& hash = hashes[static_cast<std::size_t>(i)];
        hash = (hash ^ std::bit_cast<std::uint64_t>(inputs(i, j) + 0.0)) *
               0x9E3779B97F4A7C15ULL;  // + 0.0: -0 becomes 0
        hash ^= hash >> 29;
      }
  }
  return hashes;
}

}  // namespace

// A table of the distinct rows (open addressing).
std::vector<Index> first_equal_rows(const Matrix& values) {
  const auto hashes = row_hashes(values);
  std::vector<Index> table(std::bit_ceil(2 * hashes.size() + 1), -1);
  std::vector<Index> first(hashes.size());
  for (Index i = 0; i < values.rows(); ++i) {
    const std::uint64_t hash = hashes[static_cast<std::size_t>(i)];
    for (std::size_t slot = hash;; ++slot) {
      Index& other = table[slot & (table.size() - 1)];
      if (other < 0) other = i;
      const bool same = hashes[static_cast<std::size_t>(other)] == hash;
      if (other == i || (same && values.row(other) == values.row(i))) {
        first[static_cast<std::size_t>(i)] = other;
        break;
      }
    }
  }
  return first;
}

}  // namespace mercer::data
