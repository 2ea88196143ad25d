// A diagonal matrix D: one value for all rows, or one for each. What is added to K in H = K + D,
// the noise of the observations, is mostly the first; code that takes a Diagonal serves both.
#pragma once

#include <span>
#include <utility>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

class Diagonal {
 public:
  Diagonal(double value = 0) : value_(value) {}            // NOLINT: a number is one
  Diagonal(Vector values) : values_(std::move(values)) {}  // NOLINT: and so is a vector

  bool uniform() const { return values_.size() == 0; }
  double operator()(Index i) const { return uniform() ? value_ : values_(i); }
  Vector vector(Index n) const { return uniform() ? Vector::Constant(n, value_) : values_; }
  double least() const { return uniform() ? value_ : values_.minCoeff(); }
  /// The harmonic mean h of the entries, for methods that take a single noise variance: when a and
  /// d are uncorrelated, sum_i a_i / d_i = (sum_i a_i) / h.
  double harmonic_mean() const;
  double trace(Index n) const;

  Diagonal plus(double more) const;
  Diagonal times(double factor) const;
  /// Entries below `least` are raised to it.
  Diagonal raised_to(double least) const;
  /// The entries of these rows, in this order.
  Diagonal rows(std::span<const Index> which) const;

  /// y += scale D x.
  void add_product(double scale, ConstMatrixView x, MatrixView y) const;
  /// x'D^-1 x of each column.
  Vector inverse_squares(ConstMatrixView x) const;

  /// Throw InvalidArgument, naming `owner`, unless all entries are finite and > 0, or >= 0.
  void require_positive(const char* owner) const;
  void require_nonnegative(const char* owner) const;
  /// Throws DimensionMismatch unless it fits a matrix of n rows.
  void require_size(Index n, const char* owner) const;

 private:
  double value_ = 0;
  Vector values_;  // empty: value_ in all rows
};

}  // namespace mercer::linalg
MERCER_API_END
