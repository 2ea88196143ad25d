// Random parts of a data set. The same seed gives the same parts, on any machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct Split {
  std::vector<Index> train;  // row numbers, ascending
  std::vector<Index> test;
};

/// About n * test_fraction random rows for the test part, at least one on each side; n >= 2.
Split split_rows(Index n, double test_fraction, std::uint64_t seed);

/// The fold, 0 .. folds - 1, of each row; fold sizes differ by one at most.
std::vector<Index> fold_of_rows(Index n, Index folds, std::uint64_t seed);
/// Test on one fold, train on the others.
Split fold_split(std::span<const Index> fold_of_row, Index fold);

Matrix take_rows(ConstMatrixView values, std::span<const Index> rows);
Vector take_rows(ConstVectorView values, std::span<const Index> rows);

}  // namespace mercer::data
MERCER_API_END
