#include "mercer/diagnostics/summary.hpp"

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/diagnostics/autocorrelation.hpp"
#include "mercer/diagnostics/chains.hpp"

namespace mercer::diagnostics {

Summary summarise(ConstMatrixView draws) {
  if (draws.size() == 0) throw InvalidArgument("diagnostics: there are no draws");
  Summary s;
  const auto count = static_cast<double>(draws.size());
  s.mean = draws.mean();
  s.sd = std::sqrt((draws.array() - s.mean).square().sum() / (count - 1));
  s.q05 = quantile(draws, 0.05);
  s.median = quantile(draws, 0.5);
  s.q95 = quantile(draws, 0.95);
  s.rhat = rhat(draws);
  s.ess_bulk = ess_bulk(draws);
  s.ess_tail = ess_tail(draws);
  s.ess_mean = ess_mean(draws);
  s.effective_size = effective_size(draws);
  s.mcse_mean = mcse_mean(draws);
  s.mcse_sd = mcse_sd(draws);
  s.mcse_q05 = mcse_quantile(draws, 0.05);
  s.mcse_q95 = mcse_quantile(draws, 0.95);
  s.psrf = gelman_rubin(draws);
  return s;
}

}  // namespace mercer::diagnostics
