// The error of approximate standard deviations, measured: a random sample of the predicted rows is
// kept while they stream by, and is solved for at the end (inference/variance_check.hpp).
//   Source: Vitter (1985), algorithm R: every row is as likely to be in the sample, however many
//           come and however they are cut into blocks; memory is that of the sample.
//   What it says: with n rows, the share of rows that are off by more than the largest error seen
//   is
//           below p with a confidence of 1 - (1 - p)^n: 1 row in 3 with 8 rows, 1 in 21 with 64, at
//           96 %.
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/core/rng.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// Fewer than 1 row in `one_in` is off by more than the largest error seen, with this confidence.
/// All rows were checked: none is, for certain, and one_in is 0.
struct Exceeded {
  Index one_in = 0;
  double confidence = 1;
};
/// The largest one_in whose confidence is 95 % at least; where so few rows allow no more than 1 row
/// in 2, that with the confidence it has. `checked` rows, taken at random from so many.
Exceeded exceeded(Index checked, Index rows);

/// |sd_latent - exact sd_latent| over the sampled rows, in target units.
struct SdError {
  Index rows = 0;       // checked
  Index predicted = 0;  // that they were taken from
  double largest = 0;
  double rms = 0;
  double largest_relative = 0;  // of the exact one
  /// How far the standard deviations it was measured by are above the exact ones, because their
  /// solves were left early: an estimate, and a bound that counts rounding too.
  double check_error = 0, check_bound = 0;
  std::int64_t matvecs = 0;

  void add(double sd, double exact);
  Exceeded exceeded() const { return models::exceeded(rows, predicted); }
};

class RowSample {
 public:
  RowSample(Index rows, std::uint64_t seed);

  /// The next rows of the stream: raw inputs and the standard deviations to be checked, a column
  /// for every latent function; and the products that they took.
  void add(ConstMatrixView inputs, ConstMatrixView sd, std::int64_t matvecs = 0);

  Index size() const { return static_cast<Index>(sd_.size()); }
  /// Rows of the stream so far, and their products.
  Index seen() const { return seen_; }
  std::int64_t matvecs() const { return matvecs_; }
  /// Rows of the sample in random order: the first of them are a sample as well.
  Matrix inputs() const;
  Matrix sd() const;

 private:
  Matrix stacked(const std::vector<Vector>& rows) const;

  Index capacity_;
  std::uint64_t seed_;
  Rng rng_;
  Index seen_ = 0;
  std::int64_t matvecs_ = 0;
  std::vector<Vector> inputs_;
  std::vector<Vector> sd_;
};

}  // namespace mercer::models
MERCER_API_END
