// The distribution of y when log y is normal: what is predicted of a target that was learned as its
// logarithm (Schema::log_target).
//   Source: Baran & Lerch (2015), Log-normal distribution based ensemble model output statistics
//           models for probabilistic wind-speed forecasting, Q. J. R. Meteorol. Soc. 141 (crps).
#pragma once

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// The distribution function of N(0, 1).
double standard_normal_cdf(double z);

/// log y ~ N(mu, sigma^2); sigma may be 0 but for log_density and crps.
struct LogNormal {
  double mu = 0, sigma = 0;

  double median() const;
  double mean() const;        // exp(mu + sigma^2 / 2)
  double sd() const;          // mean sqrt(exp(sigma^2) - 1)
  double at(double z) const;  // exp(mu + z sigma): the quantile where z is the normal one
  double z(double y) const;   // (log y - mu) / sigma
  double log_density(double y) const;
  /// Continuous ranked probability score of y.
  double crps(double y) const;
  /// Largest |mean - mean'| when mu' + sigma'^2 / 2 is within `bound` of mu + sigma^2 / 2:
  /// mean (exp(bound) - 1), and what rounding adds.
  double mean_error(double bound) const;
};

/// The one with this mu, and this ratio of standard deviation and mean.
LogNormal log_normal_of_ratio(double mu, double sd_over_mean);

}  // namespace mercer::models
MERCER_API_END
