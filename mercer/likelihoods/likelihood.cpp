#include "mercer/likelihoods/likelihood.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "mercer/likelihoods/detail/quadrature.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

struct Peak {
  double at = 0, width = 0;
};

// The maximum of log p(y | f) - (f - mean)^2 / (2 variance), for a log p that is concave in f:
// Newton's method inside a bracket, halved at every third step.
Peak peak(const Likelihood& likelihood, double y, double mean, double variance) {
  const auto slope = [&](const LogDensity& d, double f) { return d.first - (f - mean) / variance; };
  const double sd = std::sqrt(variance);
  const double direction = slope(likelihood.log_density(y, mean), mean) > 0 ? 1 : -1;
  double reach = sd;
  for (double f = mean + direction * reach;
       direction * slope(likelihood.log_density(y, f), f) > 0 && std::isfinite(f);
       f = mean + direction * reach)
    reach *= 2;
  double lower = std::min(mean, mean + direction * reach);
  double upper = std::max(mean, mean + direction * reach);
  Peak out{mean, sd};
  for (int iteration = 1; iteration < 200; ++iteration) {
    const auto d = likelihood.log_density(y, out.at);
    const double g = slope(d, out.at);
    (g > 0 ? lower : upper) = out.at;
    out.width = 1 / std::sqrt(1 / variance - d.second);
    double next = out.at + g * out.width * out.width;
    // Also where Newton's step is not a number, because log p overflows.
    if (iteration % 3 == 0 || !(next > lower && next < upper)) next = 0.5 * (lower + upper);
    const double step = std::abs(next - out.at);
    out.at = next;
    if (step <= 0.1 * out.width) break;
  }
  out.width = 1 / std::sqrt(1 / variance - likelihood.log_density(y, out.at).second);
  return out;
}

[[noreturn]] void refuse_single(const Likelihood& likelihood) {
  throw InvalidArgument(
      fmt::format("the likelihood {} couples the functions of a row: a single one has no density",
                  likelihood.text()));
}

}  // namespace

Curvature Likelihood::curvature(double y, double f) const {
  const auto d = log_density(y, f);
  return {-d.second, -d.third};
}

void Likelihood::set_log_parameters(ConstVectorView theta) {
  if (theta.size() != 0)
    throw DimensionMismatch("likelihood: parameters given", theta.size(), "parameters of " + text(),
                            0);
}

void Likelihood::parameter_slopes(double /*y*/, double /*f*/, std::span<ParameterSlope> out) const {
  if (!out.empty())
    throw DimensionMismatch("likelihood: slopes asked for", static_cast<Index>(out.size()),
                            "parameters of " + text(), 0);
}

double Likelihood::log_predictive(double y, double mean, double variance) const {
  if (variance == 0) return log_density(y, mean).value;
  if (!log_concave())
    return std::log(detail::gaussian_average(
        [&](double f) { return std::exp(log_density(y, f).value); }, mean, variance));
  const auto [at, width] = peak(*this, y, mean, variance);
  const auto log_g = [&](double f) {
    return log_density(y, f).value - 0.5 * (f - mean) * (f - mean) / variance;
  };
  return detail::log_integral(log_g, at, width) - 0.5 * (detail::log_2pi + std::log(variance));
}

Predictive Likelihood::predictive(double mean, double variance) const {
  const auto average = [&](const auto& g) { return detail::gaussian_average(g, mean, variance); };
  const double centre = average([&](double f) { return moments(f).mean; });
  const double spread = average([&](double f) {
    const auto given = moments(f);
    return given.variance + (given.mean - centre) * (given.mean - centre);
  });
  return {centre, spread};
}

double Likelihood::predictive_cdf(double y, double mean, double variance) const {
  return detail::gaussian_average([&](double f) { return cdf(y, f); }, mean, variance);
}

LogDensity CoupledLikelihood::log_density(double /*y*/, double /*f*/) const {
  refuse_single(*this);
}
double CoupledLikelihood::predictive_quantile(double /*p*/, double /*mean*/,
                                              double /*variance*/) const {
  refuse_single(*this);
}
Predictive CoupledLikelihood::moments(double /*f*/) const { refuse_single(*this); }
double CoupledLikelihood::cdf(double /*y*/, double /*f*/) const { refuse_single(*this); }

}  // namespace mercer::likelihoods
