#include "mercer/data/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::data {
namespace {

void check_row(Index row, Index rows) {
  if (row < 0 || row >= rows)
    throw InvalidArgument(fmt::format("take_rows: row {} of a block of {} rows", row, rows));
}

}  // namespace

Split split_rows(Index n, double test_fraction, std::uint64_t seed) {
  if (n < 2) throw InvalidArgument(fmt::format("split_rows: {} rows cannot be split in two", n));
  if (!(test_fraction > 0 && test_fraction < 1))
    throw InvalidArgument(
        fmt::format("split_rows: test_fraction is {}, but must be between 0 and 1", test_fraction));
  const auto wanted = static_cast<Index>(std::llround(static_cast<double>(n) * test_fraction));
  const Index tests = std::clamp<Index>(wanted, 1, n - 1);
  Rng rng(seed, "split");
  const auto order = rng.permutation(n);
  Split split;
  split.test.assign(order.begin(), order.begin() + tests);
  split.train.assign(order.begin() + tests, order.end());
  std::sort(split.test.begin(), split.test.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

std::vector<Index> fold_of_rows(Index n, Index folds, std::uint64_t seed) {
  if (folds < 2 || folds > n)
    throw InvalidArgument(
        fmt::format("fold_of_rows: {} folds of {} rows; use 2 up to the number of rows", folds, n));
  Rng rng(seed, "folds");
  const auto order = rng.permutation(n);
  std::vector<Index> fold(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    fold[static_cast<std::size_t>(order[i])] = static_cast<Index>(i) % folds;
  return fold;
}

Split fold_split(std::span<const Index> fold_of_row, Index fold) {
  Split split;
  for (std::size_t i = 0; i < fold_of_row.size(); ++i)
    (fold_of_row[i] == fold ? split.test : split.train).push_back(static_cast<Index>(i));
  if (split.test.empty() || split.train.empty())
    throw InvalidArgument(fmt::format("fold_split: fold {} leaves one part empty", fold));
  return split;
}

Matrix take_rows(ConstMatrixView values, std::span<const Index> rows) {
  Matrix out(static_cast<Index>(rows.size()), values.cols());
  for (const Index row : rows) check_row(row, values.rows());
  for (Index j = 0; j < values.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = values(rows[static_cast<std::size_t>(i)], j);
  return out;
}

Vector take_rows(ConstVectorView values, std::span<const Index> rows) {
  Vector out(static_cast<Index>(rows.size()));
  for (Index i = 0; i < out.size(); ++i) {
    check_row(rows[static_cast<std::size_t>(i)], values.size());
    out[i] = values[rows[static_cast<std::size_t>(i)]];
  }
  return out;
}

}  // namespace mercer::data
