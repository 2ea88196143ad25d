#include "mercer/inference/observations.hpp"

#include <cmath>
#include <numbers>

namespace mercer::inference {
namespace {

Vector part(const Vector& values, std::span<const Index> which) {
  if (values.size() == 0) return {};
  return linalg::Diagonal(values).rows(which).vector(static_cast<Index>(which.size()));
}

}  // namespace

linalg::Diagonal RowNoise::slope(double s2) const {
  if (weight.size() == 0) return s2;
  return Vector(s2 * weight.cwiseInverse());
}

linalg::Diagonal RowNoise::at(double s2) const {
  auto learned = slope(s2);
  if (known.size() == 0) return learned;
  return Vector(learned.vector(known.size()) + known);
}

RowNoise RowNoise::rows(std::span<const Index> which) const {
  return {part(weight, which), part(known, which)};
}

double Replicates::log_likelihood(double s2) const {
  return -0.5 *
         (removed.sum() * std::log(2 * std::numbers::pi * s2) + log_det.sum() + squares.sum() / s2);
}

double Replicates::slope(double s2) const { return 0.5 * (squares.sum() / s2 - removed.sum()); }

Replicates Replicates::rows(std::span<const Index> which) const {
  return {part(removed, which), part(log_det, which), part(squares, which)};
}

Observations Observations::rows(std::span<const Index> which) const {
  const auto count = static_cast<Index>(which.size());
  Observations out{Matrix(count, x.cols()), Matrix(count, y.cols()), offset, noise.rows(which),
                   replicates.rows(which)};
  for (Index i = 0; i < count; ++i) {
    const Index from = which[static_cast<std::size_t>(i)];
    out.x.row(i) = x.row(from);
    out.y.row(i) = y.row(from);
  }
  return out;
}

}  // namespace mercer::inference
