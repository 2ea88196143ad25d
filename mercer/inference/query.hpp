// What is known of the latent functions at new points, whatever the posterior: built once, then
// asked for blocks of rows. Everything is on the scale of the model.
#pragma once

#include <functional>
#include <optional>

#include "mercer/core/history.hpp"
#include "mercer/core/types.hpp"
#include "mercer/inference/variance_check.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// M rows.
struct QueryBlock {
  Matrix x;      // M x d
  Matrix basis;  // of the mean, M x q
  Vector prior;  // k**

  QueryBlock rows(Index first, Index count) const {
    return {x.middleRows(first, count), basis.middleRows(first, count),
            prior.segment(first, count)};
  }
};

/// Of C latent functions at the rows of a block.
struct Moments {
  Matrix mean, error_bound;  // M x C; the bound is that of the mean
  Matrix variance;           // M x C; empty when there is none
  /// Functions that are not independent: M x C^2, entry (c, d) in column c + C d. Empty otherwise.
  Matrix covariance;
  Matrix deviations;  // M x (C n): the n draws of each function that are asked for, less its mean
  /// No standard deviation is further than this from the exact one; unset when that is not known.
  std::optional<double> sd_error_bound = 0.0;
  Index clamped = 0;  // variances raised to the least that is told from rounding
  /// Largest number that was added to the diagonal of the prior covariance of these rows, where
  /// that is factored (bcm).
  double jitter = 0;
  std::int64_t matvecs = 0;
};

/// Told the share of the work that is done.
using QueryProgress = std::function<Action(double done)>;

class Query {
 public:
  virtual ~Query() = default;
  /// Throws Interrupted when `progress` stops, ToleranceNotReached when a solve fails.
  virtual Moments moments(const QueryBlock& block, const QueryProgress& progress) = 0;
  /// Variances by solves, to measure the error of the standard deviations `sd` (M x C): as exact as
  /// that needs. A solve that ends early is no error: what it leaves open is part of the result.
  virtual CheckedVariances check_variances(const QueryBlock& block, ConstMatrixView sd,
                                           const QueryProgress& progress) = 0;
};

/// Variances below this share of the prior variance are rounding, not knowledge; true when raised.
inline bool raise_to_floor(double& variance, double prior) {
  const double floor = 1e-12 * prior;
  if (!(variance < floor)) return false;
  variance = floor;
  return true;
}

}  // namespace mercer::inference
MERCER_API_END
