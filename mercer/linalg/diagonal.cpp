#include "mercer/linalg/diagonal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::linalg {
namespace {

[[noreturn]] void refuse(const char* owner, double value, const char* allowed) {
  throw InvalidArgument(
      fmt::format("{}: the noise variance is {}, but must be {}", owner, value, allowed));
}

}  // namespace

double Diagonal::harmonic_mean() const {
  return uniform() ? value_ : static_cast<double>(values_.size()) / values_.cwiseInverse().sum();
}

double Diagonal::trace(Index n) const {
  return uniform() ? static_cast<double>(n) * value_ : values_.sum();
}

Diagonal Diagonal::plus(double more) const {
  return uniform() ? Diagonal(value_ + more) : Diagonal(Vector(values_.array() + more));
}

Diagonal Diagonal::times(double factor) const {
  return uniform() ? Diagonal(factor * value_) : Diagonal(Vector(factor * values_));
}

Diagonal Diagonal::raised_to(double least) const {
  return uniform() ? Diagonal(std::max(value_, least)) : Diagonal(Vector(values_.cwiseMax(least)));
}

Diagonal Diagonal::rows(std::span<const Index> which) const {
  if (uniform()) return *this;
  Vector part(static_cast<Index>(which.size()));
  for (std::size_t i = 0; i < which.size(); ++i) part(static_cast<Index>(i)) = values_(which[i]);
  return part;
}

void Diagonal::add_product(double scale, ConstMatrixView x, MatrixView y) const {
  if (uniform()) {
    y += scale * value_ * x;
    return;
  }
  for (Index j = 0; j < x.cols(); ++j)
    y.col(j).array() += scale * values_.array() * x.col(j).array();
}

Vector Diagonal::inverse_squares(ConstMatrixView x) const {
  Vector out(x.cols());
  const std::span squares(out.data(), static_cast<std::size_t>(x.cols()));
  if (uniform()) {
    column_dots(x, x, squares);
    out /= value_;
  } else {
    column_dots(x, values_.cwiseInverse().asDiagonal() * x, squares);
  }
  return out;
}

void Diagonal::require_positive(const char* owner) const {
  for (const double value : vector(1))
    if (!(value > 0) || !std::isfinite(value)) refuse(owner, value, "positive");
}

void Diagonal::require_nonnegative(const char* owner) const {
  for (const double value : vector(1))
    if (!(value >= 0) || !std::isfinite(value)) refuse(owner, value, "zero or positive");
}

void Diagonal::require_size(Index n, const char* owner) const {
  if (!uniform() && values_.size() != n)
    throw DimensionMismatch(fmt::format("{}: noise variances", owner), values_.size(), "points", n);
}

}  // namespace mercer::linalg
