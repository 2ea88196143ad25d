// Convergence and accuracy of draws from several chains, by ranks, after each chain is split in
// two.
//   Source: Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), Rank-normalization, folding, and
//           localization; as the R package posterior computes it.
//   Cost:   a sort, and one pass over the draws for each lag until the correlation is gone.
//
// draws are iterations x chains. A value is not a number, as posterior's is NA, when a draw is not
// finite, when nothing moves, or when halves are too short: two draws each for rhat, three for the
// others. One chain is enough, because it is split.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::diagnostics {

/// The larger of the R-hats of ranks and of ranks of |x - median|: below 1.01 the chains have
/// mixed.
double rhat(ConstMatrixView draws);
/// Effective sample sizes: for means of ranks (bulk), for the 5 % and 95 % quantiles (tail, the
/// smaller), for one quantile, and for the mean itself.
double ess_bulk(ConstMatrixView draws);
double ess_tail(ConstMatrixView draws);
double ess_quantile(ConstMatrixView draws, double probability);
double ess_mean(ConstMatrixView draws);
/// ess_mean, of whole chains when they are not to be split.
double ess_basic(ConstMatrixView draws, bool split = true);

/// Monte Carlo standard errors of the mean, the standard deviation and a quantile.
double mcse_mean(ConstMatrixView draws);
double mcse_sd(ConstMatrixView draws);
double mcse_quantile(ConstMatrixView draws, double probability);

/// The quantile of all draws by linear interpolation (type 7 of R); not a number when one is not.
double quantile(ConstMatrixView draws, double probability);

}  // namespace mercer::diagnostics
MERCER_API_END
