// The potential scale reduction factor of several chains: by how much the spread of a parameter
// would still shrink if they ran for ever. Near 1 they agree.
//   Source: Gelman & Rubin (1992), Brooks & Gelman (1998), as the R package coda computes it.
//   When not: one chain (use rhat of chains.hpp, which splits it); heavy tails, where it misses
//   what rhat sees.
#pragma once

#include <optional>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::diagnostics {

struct GelmanRubinOptions {
  double confidence = 0.95;
  /// Take the logarithm of positive draws, the logit of draws between 0 and 1; it is made for
  /// parameters that are nearly normal.
  bool transform = false;
};

struct GelmanRubin {
  double estimate = 0, upper = 0;  // not numbers when no chain moves
};
/// draws: iterations x chains, those of a burn-in left out. Nothing with fewer than two chains or
/// two draws. Not numbers where a draw is not.
std::optional<GelmanRubin> gelman_rubin(ConstMatrixView draws,
                                        const GelmanRubinOptions& options = {});

/// Of several parameters at once, the largest over their linear combinations (an upper bound of
/// each); nothing where the single ones have nothing, or where the covariance within chains is not
/// positive definite.
std::optional<double> multivariate_gelman_rubin(const std::vector<Matrix>& parameters,
                                                bool transform = false);

}  // namespace mercer::diagnostics
MERCER_API_END
