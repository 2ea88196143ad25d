#include "mercer/training/sampling/summary.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/diagnostics/chains.hpp"
#include "mercer/diagnostics/summary.hpp"

namespace mercer::training {
namespace {

constexpr Index kLeastDraws = 4;

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

ParameterSummary summarise(ConstMatrixView values) {
  const auto found = diagnostics::summarise(values);
  ParameterSummary out{.mean = found.mean, .sd = found.sd, .q05 = found.q05, .q95 = found.q95};
  if (values.rows() < kLeastDraws) return out;
  out.ess = known(found.ess_bulk);
  out.mcse = known(found.mcse_mean);
  // The halves of one chain are no two chains from starts far apart.
  if (values.cols() > 1) out.rhat = known(found.rhat);
  return out;
}

std::vector<ParameterSummary> summarise(const Draws& draws) {
  std::vector<ParameterSummary> out;
  const Index n = draws.per_chain();
  for (Index i = 0; i < draws.phi.cols(); ++i) {
    const Vector values = draws.phi.col(i).array().exp();
    out.push_back(summarise(Eigen::Map<const Matrix>(values.data(), n, draws.size() / n)));
  }
  return out;
}

ChainsSoFar chains_so_far(const std::vector<Matrix>& phi) {
  ChainsSoFar out;
  for (const auto& values : phi) {
    if (values.rows() < kLeastDraws) return {};
    if (const auto rhat = known(diagnostics::rhat(values)); rhat && values.cols() > 1)
      out.rhat = std::max(out.rhat.value_or(0), *rhat);
    if (const auto ess = known(diagnostics::ess_mean(values)))
      out.ess = std::min(out.ess.value_or(HUGE_VAL), *ess);
  }
  return out;
}

}  // namespace mercer::training
