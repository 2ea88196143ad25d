// What draws say of one parameter, and how far they can be trusted (diagnostics/chains.hpp): R-hat
// and effective sample size of ranks, chains split in halves.
#pragma once

#include <optional>
#include <vector>

#include "mercer/training/sampling/draws.hpp"

MERCER_API_BEGIN
namespace mercer::training {

struct ParameterSummary {
  double mean = 0, sd = 0, q05 = 0, q95 = 0;
  /// Unset with one chain, or fewer than four draws of each.
  std::optional<double> rhat;
  /// Effective number of draws in the bulk of the posterior, and the Monte Carlo standard error of
  /// the mean; unset with fewer than four draws of each chain, or where all are equal.
  std::optional<double> ess, mcse;
  bool chain_stands = false;  // all draws of a chain are equal, though there are four at least
};

/// `values`: of one parameter, draws x chains.
ParameterSummary summarise(ConstMatrixView values);

/// Of every parameter, as values and not as logarithms.
std::vector<ParameterSummary> summarise(const Draws& draws);

/// sgld: what the step has moved the logarithm of a parameter by, extrapolated from half of it: the
/// bias is proportional to the step, so that it is twice the difference between the two. Errors are
/// standard errors from the spread of chains; unset with one chain.
struct StepBias {
  double mean = 0;  // of the mean, in standard deviations of the posterior
  double sd = 0;    // of the standard deviation, in the same
  std::optional<double> mean_error, sd_error;
};

/// Of every parameter; empty where no chain has a path in half steps.
std::vector<StepBias> step_bias(const Draws& draws);

/// For progress: the largest R-hat of all parameters, and the smallest effective number of draws
/// for the mean. Unset where not known.
struct ChainsSoFar {
  std::optional<double> rhat, ess;
};
ChainsSoFar chains_so_far(const std::vector<Matrix>& phi);  // a matrix a parameter, draws x chains

}  // namespace mercer::training
MERCER_API_END
