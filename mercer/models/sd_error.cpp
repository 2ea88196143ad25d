#include "mercer/models/sd_error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mercer::models {

namespace {

constexpr double kConfidence = 0.95;

double confidence(Index one_in, Index checked) {
  return 1 - std::pow(1 - 1 / static_cast<double>(one_in), static_cast<double>(checked));
}

}  // namespace

Exceeded exceeded(Index checked, Index rows) {
  if (checked >= rows) return {};
  Index one_in = 2;
  while (confidence(one_in + 1, checked) >= kConfidence) ++one_in;
  return {one_in, confidence(one_in, checked)};
}

void SdError::add(double sd, double exact) {
  const double error = std::abs(sd - exact);
  const auto before = static_cast<double>(rows++);
  rms = std::sqrt((rms * rms * before + error * error) / static_cast<double>(rows));
  largest = std::max(largest, error);
  if (exact > 0) largest_relative = std::max(largest_relative, error / exact);
}

RowSample::RowSample(Index rows, std::uint64_t seed)
    : capacity_(rows), seed_(seed), rng_(seed, "rows to check") {}

void RowSample::add(ConstMatrixView inputs, ConstMatrixView sd, std::int64_t matvecs) {
  if (capacity_ == 0) return;
  matvecs_ += matvecs;
  for (Index i = 0; i < inputs.rows(); ++i, ++seen_) {
    if (seen_ < capacity_) {
      inputs_.emplace_back(inputs.row(i));
      sd_.emplace_back(sd.row(i));
    } else if (const Index place = rng_.index(seen_ + 1); place < capacity_) {
      inputs_[static_cast<std::size_t>(place)] = inputs.row(i);
      sd_[static_cast<std::size_t>(place)] = sd.row(i);
    }
  }
}

// Algorithm R leaves early rows in early places: they are shuffled, always in the same way.
Matrix RowSample::stacked(const std::vector<Vector>& rows) const {
  std::vector<Index> order(rows.size());
  std::iota(order.begin(), order.end(), Index{0});
  Rng rng(seed_, "order of checks");
  for (Index i = static_cast<Index>(rows.size()) - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(rng.index(i + 1))]);
  Matrix out(static_cast<Index>(rows.size()), rows.empty() ? 0 : rows.front().size());
  for (Index i = 0; i < out.rows(); ++i)
    out.row(i) = rows[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
  return out;
}

Matrix RowSample::inputs() const { return stacked(inputs_); }
Matrix RowSample::sd() const { return stacked(sd_); }

}  // namespace mercer::models
