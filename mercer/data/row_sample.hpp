// What one pass over rows finds out of all of them without keeping them: a uniform sample, mean and
// standard deviation of every column, how often each category occurs, and a fingerprint.
//   Source: Vitter (1985), algorithm R, for the sample; Chan, Golub & LeVeque (1983) for moments of
//           parts that are put together.
//   Cost:   memory of the sample; a few operations a cell.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mercer/core/checksum.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"
#include "mercer/data/column_choice.hpp"

namespace mercer::data {

/// Of one column, rows added in parts. In long double, whose range holds squares of any double.
class ColumnMoments {
 public:
  /// `rows` values, `stride` apart.
  void add(const double* first, Index rows, Index stride, bool logarithm);
  double mean() const { return static_cast<double>(mean_); }
  /// 1 when all values are the same.
  double sd() const;
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  long double mean_ = 0, squares_ = 0;
  double low_ = 0, high_ = 0;
  Index count_ = 0;
};

class RowSample {
 public:
  /// Rows of `width` numbers, of which `rows` are kept at most. `logarithm`: the moments of the
  /// first column are those of its logarithm.
  RowSample(Index rows, std::uint64_t seed, std::size_t width, bool logarithm);

  /// Rows one after the other, and the number of each among all that were read. Where `category`
  /// says so, a value is the code of a category.
  void add(const std::vector<double>& piece, std::span<const Index> numbers,
           const std::vector<bool>& category);

  Index seen() const { return seen_; }
  Index kept() const { return static_cast<Index>(numbers_.size()); }
  const ColumnMoments& moments(std::size_t column) const { return moments_[column]; }
  /// Rows with each code of a column of categories.
  const std::vector<Index>& counts(std::size_t column) const { return counts_[column]; }
  std::uint64_t mark() const { return mark_; }
  /// The sample in the order of the file; `numbers` as in add().
  std::vector<double> take(std::vector<Index>& numbers);

 private:
  Index most_;
  std::size_t width_;
  bool logarithm_;
  Rng rng_;
  Index seen_ = 0;
  std::uint64_t mark_ = 0;
  std::vector<double> values_;
  std::vector<Index> numbers_;
  std::vector<ColumnMoments> moments_;
  std::vector<std::vector<Index>> counts_;
};

/// How columns become encoded inputs: the first of each (-1: none), and the place of each code
/// among the levels.
struct EncodedColumns {
  const std::vector<Column>& columns;
  const std::vector<Index>& offsets;
  const std::vector<std::vector<Index>>& ranks;
  Index dimension = 0;
};

/// Of all rows that were seen, target included.
Scaling encoded_scaling(const RowSample& sample, const EncodedColumns& encoded);
/// 2 x d: least and largest value.
Matrix encoded_range(const RowSample& sample, const EncodedColumns& encoded);
std::uint64_t fingerprint_of(const RowSample& sample, const EncodedColumns& encoded);

}  // namespace mercer::data
