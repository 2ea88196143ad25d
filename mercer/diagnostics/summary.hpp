// What a report says of one parameter: its posterior, and whether the chains can be believed.
#pragma once

#include <optional>

#include "mercer/diagnostics/gelman_rubin.hpp"

MERCER_API_BEGIN
namespace mercer::diagnostics {

struct Summary {
  double mean = 0, sd = 0, q05 = 0, median = 0, q95 = 0;
  // Not numbers where there are too few draws or nothing moves (chains.hpp).
  double rhat = 0, ess_bulk = 0, ess_tail = 0, ess_mean = 0, effective_size = 0;
  double mcse_mean = 0, mcse_sd = 0, mcse_q05 = 0, mcse_q95 = 0;
  std::optional<GelmanRubin> psrf;  // unset with one chain: it compares chains
};

/// draws: iterations x chains of one parameter, burn-in left out.
Summary summarise(ConstMatrixView draws);

}  // namespace mercer::diagnostics
MERCER_API_END
