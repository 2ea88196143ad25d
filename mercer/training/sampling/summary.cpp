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

// One number a chain: their mean, and its standard error.
struct OverChains {
  double mean = 0;
  std::optional<double> error;
};
OverChains over_chains(const Vector& values) {
  OverChains out{values.mean(), {}};
  const auto count = static_cast<double>(values.size());
  if (values.size() > 1)
    out.error = (values.array() - out.mean).matrix().norm() / std::sqrt(count * (count - 1));
  return out;
}

}  // namespace

ParameterSummary summarise(ConstMatrixView values) {
  const auto found = diagnostics::summarise(values);
  ParameterSummary out{.mean = found.mean, .sd = found.sd, .q05 = found.q05, .q95 = found.q95};
  if (values.rows() < kLeastDraws) return out;
  for (Index c = 0; c < values.cols(); ++c)
    out.chain_stands = out.chain_stands || (values.col(c).array() == values(0, c)).all();
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

std::vector<StepBias> step_bias(const Draws& draws) {
  std::vector<const HalfStepSums*> sums;
  for (const auto& chain : draws.chains)
    if (chain.half_steps.iterations > 0) sums.push_back(&chain.half_steps);
  std::vector<StepBias> out;
  if (sums.empty() || draws.size() < kLeastDraws) return out;
  const auto chains = static_cast<Index>(sums.size());
  for (Index i = 0; i < draws.phi.cols(); ++i) {
    const auto phi = draws.phi.col(i);
    const double variance =
        (phi.array() - phi.mean()).square().sum() / static_cast<double>(phi.size() - 1);
    Vector chain(chains), half(chains), squares(chains);  // means of each chain
    for (Index c = 0; c < chains; ++c) {
      const auto& s = *sums[static_cast<std::size_t>(c)];
      const auto count = static_cast<double>(s.iterations);
      chain(c) = s.chain(i) / count;
      half(c) = s.half(i) / count;
      squares(c) = (s.chain_squares(i) - s.half_squares(i)) / count;
    }
    // Var = E phi^2 - 2 m E phi + m^2 with the mean m of all chains.
    const double m = chain.mean(), h = half.mean();
    const Vector variances =
        squares - 2 * (m * chain - h * half) + Vector::Constant(chains, m * m - h * h);
    const auto of_mean = over_chains(chain - half), of_variance = over_chains(variances);
    // Twice the difference, and d sd = d variance / (2 sd).
    const double sd = std::sqrt(variance);
    StepBias bias;
    if (variance > 0) {
      bias.mean = 2 * of_mean.mean / sd;
      bias.sd = of_variance.mean / variance;
      if (of_mean.error) bias.mean_error = 2 * *of_mean.error / sd;
      if (of_variance.error) bias.sd_error = *of_variance.error / variance;
    }
    out.push_back(bias);
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
