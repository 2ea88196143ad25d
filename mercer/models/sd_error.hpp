// The error of approximate standard deviations, measured: a random sample of the predicted rows is
// kept while they stream by, and is solved exactly at the end.
//   Source: Vitter (1985), algorithm R: every row is as likely to be in the sample, however many
//           come and however they are cut into blocks; memory is that of the sample.
//   What it says: with 64 rows, fewer than 1 row in 20 is off by more than the largest error seen,
//           with 96 % confidence (0.95^64 = 0.04).
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/core/rng.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// |sd_latent - exact sd_latent| over the sampled rows, in target units.
struct SdError {
  Index rows = 0;
  double largest = 0;
  double rms = 0;
  double largest_relative = 0;  // of the exact one
  std::int64_t matvecs = 0;

  void add(double sd, double exact);
};

class RowSample {
 public:
  RowSample(Index rows, std::uint64_t seed);

  /// The next rows of the stream: raw inputs and the standard deviations to be checked, a column
  /// for every latent function.
  void add(ConstMatrixView inputs, ConstMatrixView sd);

  Index size() const { return static_cast<Index>(sd_.size()); }
  /// Rows of the sample, in no order.
  Matrix inputs() const;
  Matrix sd() const;

 private:
  Index capacity_;
  Rng rng_;
  Index seen_ = 0;
  std::vector<Vector> inputs_;
  std::vector<Vector> sd_;
};

}  // namespace mercer::models
MERCER_API_END
