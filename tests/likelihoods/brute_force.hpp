// Averages over a Gaussian by a very fine trapezoid: slow, and with nothing to go wrong.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods::testing {

/// E g(f), f ~ N(mean, variance), with `nodes` per standard deviation.
template <class G>
double brute_average(const G& g, double mean, double variance, int nodes = 400) {
  constexpr int reach = 12;
  const double sd = std::sqrt(variance);
  double sum = 0;
  for (int k = -reach * nodes; k <= reach * nodes; ++k) {
    const double z = static_cast<double>(k) / nodes;
    sum += std::exp(-0.5 * z * z) * g(mean + sd * z);
  }
  return sum / nodes / std::sqrt(2 * std::numbers::pi);
}

/// log E exp(log p(y | f)), also where that is far below the smallest double.
inline double brute_log_predictive(const Likelihood& likelihood, double y, double mean,
                                   double variance, int nodes = 400) {
  constexpr int reach = 30;
  const double sd = std::sqrt(variance);
  std::vector<double> logs;
  for (int k = -reach * nodes; k <= reach * nodes; ++k) {
    const double z = static_cast<double>(k) / nodes;
    logs.push_back(likelihood.log_density(y, mean + sd * z).value - 0.5 * z * z);
  }
  const double top = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double x : logs) sum += std::exp(x - top);
  return top + std::log(sum / nodes / std::sqrt(2 * std::numbers::pi));
}

/// The registered likelihoods that couple the functions of a row, or those that do not.
inline std::vector<LikelihoodInfo> with_coupling(bool coupled) {
  std::vector<LikelihoodInfo> out;
  for (const auto& info : likelihoods())
    if ((info.make({})->coupled() != nullptr) == coupled) out.push_back(info);
  return out;
}

}  // namespace mercer::likelihoods::testing
