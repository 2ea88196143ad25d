#include "mercer/diagnostics/autocorrelation.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/diagnostics/not_a_number.hpp"

namespace mercer::diagnostics {
namespace {

// A chain whose residuals about a straight line are below this is one, as coda has it.
constexpr double kStraight = 1.5e-8;

// The standard deviation of the residuals of a straight line through the chain.
double deviation_from_line(ConstVectorView chain) {
  const Index n = chain.size();
  const Vector time = Vector::LinSpaced(n, 0.0, static_cast<double>(n - 1)).array() -
                      0.5 * static_cast<double>(n - 1);
  const Vector centred = chain.array() - chain.mean();
  const double slope = n > 1 ? time.dot(centred) / time.squaredNorm() : 0.0;
  return std::sqrt((centred - slope * time).squaredNorm() / static_cast<double>(n - 1));
}

}  // namespace

Vector autocovariance(ConstVectorView chain, Index max_lag) {
  const Index n = chain.size();
  if (max_lag < 0 || max_lag >= n)
    throw InvalidArgument("autocovariance: the lag must be below the number of draws");
  const Vector centred = chain.array() - chain.mean();
  Vector out(max_lag + 1);
  for (Index lag = 0; lag <= max_lag; ++lag)
    out(lag) = centred.head(n - lag).dot(centred.tail(n - lag)) / static_cast<double>(n);
  return out;
}

Vector autocorrelation(ConstVectorView chain, Index max_lag) {
  const Vector covariance = autocovariance(chain, max_lag);
  return covariance / covariance(0);
}

// Levinson's recursion: from the autoregression of one order the next, with its prediction error.
Autoregression autoregression(ConstVectorView chain) {
  const Index n = chain.size();
  if (n < 2) throw InvalidArgument("autoregression: needs two draws at least");
  Autoregression best;
  if (deviation_from_line(chain) < kStraight) return best;
  const auto count = static_cast<double>(n);
  const Index most = std::min<Index>(n - 1, static_cast<Index>(std::floor(10 * std::log10(count))));
  const Vector c = autocovariance(chain, most);
  Vector a = Vector::Zero(most);
  double error = c(0), least = count * std::log(error);
  best.innovation_variance = error * count / (count - 1);
  for (Index order = 1; order <= most; ++order) {
    const Index k = order - 1;
    const double last = (c(order) - a.head(k).dot(c.segment(1, k).reverse())) / error;
    const Vector before = a.head(k);
    a.head(k) -= last * before.reverse();
    a(k) = last;
    error *= 1 - last * last;
    const double criterion = count * std::log(error) + 2 * static_cast<double>(order);
    if (!(criterion < least)) continue;
    least = criterion;
    best.coefficients = a.head(order);
    best.innovation_variance = error * count / (count - static_cast<double>(order + 1));
  }
  const double gain = 1 - best.coefficients.sum();
  best.spectrum_at_zero = best.innovation_variance / (gain * gain);
  return best;
}

double effective_size(ConstMatrixView draws) {
  const Index n = draws.rows();
  if (n < 2 || draws.cols() == 0 || !draws.allFinite()) return kNotANumber;
  double sum = 0;
  for (Index j = 0; j < draws.cols(); ++j) {
    const double spectrum = autoregression(draws.col(j)).spectrum_at_zero;
    if (spectrum == 0) continue;
    const double squares = (draws.col(j).array() - draws.col(j).mean()).square().sum();
    sum += static_cast<double>(n) * squares / static_cast<double>(n - 1) / spectrum;
  }
  return sum;
}

RunningMean running_mean(ConstVectorView chain) {
  RunningMean out{Vector(chain.size()), Vector(chain.size())};
  double mean = 0, squares = 0;
  for (Index i = 0; i < chain.size(); ++i) {
    const double change = chain(i) - mean;
    mean += change / static_cast<double>(i + 1);
    squares += change * (chain(i) - mean);
    out.mean(i) = mean;
    out.sd(i) = i > 0 ? std::sqrt(squares / static_cast<double>(i)) : 0.0;
  }
  return out;
}

}  // namespace mercer::diagnostics
