#include "mercer/models/sd_error.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::models {

namespace {

Matrix stacked(const std::vector<Vector>& rows) {
  Matrix out(static_cast<Index>(rows.size()), rows.empty() ? 0 : rows.front().size());
  for (Index i = 0; i < out.rows(); ++i) out.row(i) = rows[static_cast<std::size_t>(i)];
  return out;
}

}  // namespace

void SdError::add(double sd, double exact) {
  const double error = std::abs(sd - exact);
  const auto before = static_cast<double>(rows++);
  rms = std::sqrt((rms * rms * before + error * error) / static_cast<double>(rows));
  largest = std::max(largest, error);
  if (exact > 0) largest_relative = std::max(largest_relative, error / exact);
}

RowSample::RowSample(Index rows, std::uint64_t seed)
    : capacity_(rows), rng_(seed, "rows to check") {}

void RowSample::add(ConstMatrixView inputs, ConstMatrixView sd) {
  if (capacity_ == 0) return;
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

Matrix RowSample::inputs() const { return stacked(inputs_); }
Matrix RowSample::sd() const { return stacked(sd_); }

}  // namespace mercer::models
