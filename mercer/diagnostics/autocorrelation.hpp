// Autocorrelation of one chain, and what follows from it: the effective sample size by the spectral
// density at frequency zero, and the running mean.
//   Source: Plummer et al. (2006), the R package coda; Box & Jenkins for Yule-Walker.
//   Cost:   one pass over the chain for each lag: 10 log10(n) lags for the effective size.
//   The effective sizes of chains.hpp know about differences between chains; these do not.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::diagnostics {

/// Autocovariances at lags 0 .. max_lag (below the number of draws), each divided by the number of
/// draws, whatever the lag.
Vector autocovariance(ConstVectorView chain, Index max_lag);
/// The same over the one at lag 0: 1 at lag 0; not numbers when the chain is constant.
Vector autocorrelation(ConstVectorView chain, Index max_lag);

/// An autoregression by Yule-Walker, of the order below 10 log10(n) that has the least AIC.
struct Autoregression {
  Vector coefficients;
  double innovation_variance = 0;
  /// The spectral density at frequency zero; zero for a chain that is a straight line.
  double spectrum_at_zero = 0;
};
Autoregression autoregression(ConstVectorView chain);

/// n var / spectrum_at_zero of each chain (column), summed, as coda::effectiveSize; 0 of a chain
/// that does not move. Not a number when a draw is not, or with fewer than two draws.
double effective_size(ConstMatrixView draws);

/// Mean and standard deviation of the first 1, 2, ... draws; the first deviation is 0.
struct RunningMean {
  Vector mean, sd;
};
RunningMean running_mean(ConstVectorView chain);

}  // namespace mercer::diagnostics
MERCER_API_END
