#include "mercer/data/row_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer::data {

void ColumnMoments::add(const double* first, Index rows, Index stride, bool logarithm) {
  if (rows == 0) return;
  const auto value = [&](Index i) {
    const double v = first[i * stride];
    return logarithm ? std::log(v) : v;
  };
  if (count_ == 0) low_ = high_ = value(0);
  // Relative to the first value: a large common offset costs no digits.
  const double origin = value(0);
  long double sum = 0;
  for (Index i = 0; i < rows; ++i) {
    const double v = value(i);
    low_ = std::min(low_, v);
    high_ = std::max(high_, v);
    sum += static_cast<long double>(v) - origin;
  }
  const long double mean = origin + sum / static_cast<long double>(rows);
  long double squares = 0;
  for (Index i = 0; i < rows; ++i) {
    const long double apart = value(i) - mean;
    squares += apart * apart;
  }
  const auto before = static_cast<long double>(count_), here = static_cast<long double>(rows);
  const long double apart = mean - mean_;
  mean_ += apart * (here / (before + here));
  squares_ += squares + apart * apart * (before * here / (before + here));
  count_ += rows;
}

double ColumnMoments::sd() const {
  if (!(low_ < high_)) return 1;
  return static_cast<double>(std::sqrt(squares_ / static_cast<long double>(count_)));
}

RowSample::RowSample(Index rows, std::uint64_t seed, std::size_t width, bool logarithm)
    : most_(rows),
      width_(width),
      logarithm_(logarithm),
      rng_(seed, "reservoir"),
      mark_(fingerprint("rows in passes", 14)),
      moments_(width),
      counts_(width) {
  if (rows < 2)
    throw InvalidArgument(fmt::format("`reservoir` is {}, but must be 2 at least", rows));
}

void RowSample::add(const std::vector<double>& piece, std::span<const Index> numbers,
                    const std::vector<bool>& category) {
  const auto rows = static_cast<Index>(numbers.size());
  for (std::size_t j = 0; j < width_; ++j) {
    if (!category[j]) {
      moments_[j].add(piece.data() + j, rows, static_cast<Index>(width_), logarithm_ && j == 0);
      continue;
    }
    for (Index i = 0; i < rows; ++i) {
      const auto code = static_cast<std::size_t>(piece[static_cast<std::size_t>(i) * width_ + j]);
      if (code >= counts_[j].size()) counts_[j].resize(code + 1, 0);
      ++counts_[j][code];
    }
  }
  mark_ = fingerprint(piece.data(), piece.size() * sizeof(double), mark_);
  for (Index i = 0; i < rows; ++i, ++seen_) {
    const double* row = piece.data() + static_cast<std::size_t>(i) * width_;
    if (seen_ < most_) {
      values_.insert(values_.end(), row, row + width_);
      numbers_.push_back(numbers[static_cast<std::size_t>(i)]);
      continue;
    }
    // Row t (from 0) is kept with probability most / (t + 1), in the place of a random one.
    const Index place = rng_.index(seen_ + 1);
    if (place >= most_) continue;
    std::copy(
        row, row + width_,
        values_.begin() + static_cast<std::ptrdiff_t>(place) * static_cast<std::ptrdiff_t>(width_));
    numbers_[static_cast<std::size_t>(place)] = numbers[static_cast<std::size_t>(i)];
  }
}

std::vector<double> RowSample::take(std::vector<Index>& numbers) {
  std::vector<std::size_t> order(numbers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return numbers_[a] < numbers_[b]; });
  std::vector<double> out;
  out.reserve(values_.size());
  numbers.clear();
  for (const auto i : order) {
    out.insert(out.end(), values_.begin() + static_cast<std::ptrdiff_t>(i * width_),
               values_.begin() + static_cast<std::ptrdiff_t>((i + 1) * width_));
    numbers.push_back(numbers_[i]);
  }
  return out;
}

Scaling encoded_scaling(const RowSample& sample, const EncodedColumns& encoded) {
  auto scaling = Scaling::identity(encoded.dimension);
  const auto rows = static_cast<double>(sample.seen());
  for (std::size_t j = 0; j < encoded.columns.size(); ++j) {
    const Index offset = encoded.offsets[j];
    if (offset < 0) continue;
    if (!encoded.columns[j].categorical) {
      scaling.input_mean[offset] = sample.moments(j).mean();
      scaling.input_sd[offset] = sample.moments(j).sd();
      continue;
    }
    const auto& counts = sample.counts(j);
    for (std::size_t code = 0; code < counts.size(); ++code) {
      const double share = static_cast<double>(counts[code]) / rows;
      const Index place = offset + encoded.ranks[j][code];
      scaling.input_mean[place] = share;
      scaling.input_sd[place] = std::sqrt(share * (1 - share));
    }
  }
  scaling.target_mean = sample.moments(0).mean();
  scaling.target_sd = sample.moments(0).sd();
  return scaling;
}

Matrix encoded_range(const RowSample& sample, const EncodedColumns& encoded) {
  Matrix range = Matrix::Zero(2, encoded.dimension);
  range.row(1).setOnes();  // categories are 0 or 1
  for (std::size_t j = 0; j < encoded.columns.size(); ++j)
    if (encoded.offsets[j] >= 0 && !encoded.columns[j].categorical)
      range.col(encoded.offsets[j]) << sample.moments(j).low(), sample.moments(j).high();
  return range;
}

std::uint64_t fingerprint_of(const RowSample& sample, const EncodedColumns& encoded) {
  const Index sizes[2] = {sample.seen(), encoded.dimension};
  auto mark = fingerprint(sizes, sizeof sizes, sample.mark());
  for (const auto& column : encoded.columns)
    for (const auto& level : column.levels) mark = fingerprint(level.data(), level.size(), mark);
  return mark;
}

}  // namespace mercer::data
