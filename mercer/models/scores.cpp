#include "mercer/models/scores.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "mercer/core/error.hpp"

namespace mercer::models {
namespace {

constexpr double kZ90 = 1.6448536269514722;  // standard normal quantile of 0.95
constexpr double kZ95 = 1.959963984540054;   // of 0.975

double normal_density(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }

}  // namespace

void ScoreKeeper::add_error(double target, double mean) {
  const double error = target - mean;
  squared_ += error * error;
  absolute_ += std::abs(error);
  ++n_;
  const double delta = target - target_mean_;
  target_mean_ += delta / static_cast<double>(n_);
  target_m2_ += delta * (target - target_mean_);
}

void ScoreKeeper::add(ConstVectorView target, const SpreadPredictions& p) {
  if (target.size() != p.mean.size() || target.size() != p.log_density.size())
    throw DimensionMismatch("scores: number of targets", target.size(), "number of predictions",
                            p.mean.size());
  if (p.crps.size() == target.size())
    crps_ += p.crps.sum();
  else
    normal_ = false;
  log_density_ += p.log_density.sum();
  for (Index i = 0; i < target.size(); ++i) {
    add_error(target(i), p.mean(i));
    inside90_ += p.q05(i) <= target(i) && target(i) <= p.q95(i) ? 1 : 0;
    inside95_ += p.q025(i) <= target(i) && target(i) <= p.q975(i) ? 1 : 0;
  }
}

void ScoreKeeper::add(ConstVectorView target, ConstVectorView mean, ConstVectorView sd_obs) {
  has_sd_ = sd_obs.size() > 0 || target.size() == 0;
  if (target.size() != mean.size() || (has_sd_ && target.size() != sd_obs.size()))
    throw DimensionMismatch("scores: number of targets", target.size(), "number of predictions",
                            mean.size());
  for (Index i = 0; i < target.size(); ++i) {
    add_error(target(i), mean(i));
    if (!has_sd_) continue;
    const double sd = sd_obs(i);
    const double z = (target(i) - mean(i)) / sd;
    log_density_ += -0.5 * std::log(2 * std::numbers::pi) - std::log(sd) - 0.5 * z * z;
    // Gneiting & Raftery (2007): crps of N(m, s) at y.
    crps_ += sd * (z * (2 * standard_normal_cdf(z) - 1) + 2 * normal_density(z) -
                   1 / std::sqrt(std::numbers::pi));
    inside90_ += std::abs(z) <= kZ90 ? 1 : 0;
    inside95_ += std::abs(z) <= kZ95 ? 1 : 0;
  }
}

void ScoreKeeper::add_log_normal(ConstVectorView target, std::span<const LogNormal> predictions) {
  if (target.size() != static_cast<Index>(predictions.size()))
    throw DimensionMismatch("scores: number of targets", target.size(), "number of predictions",
                            static_cast<Index>(predictions.size()));
  for (Index i = 0; i < target.size(); ++i) {
    const auto& p = predictions[static_cast<std::size_t>(i)];
    add_error(target(i), p.mean());
    log_density_ += p.log_density(target(i));
    crps_ += p.crps(target(i));
    const double z = p.z(target(i));
    inside90_ += std::abs(z) <= kZ90 ? 1 : 0;
    inside95_ += std::abs(z) <= kZ95 ? 1 : 0;
  }
}

void ScoreKeeper::add(const ScoreKeeper& part) {
  if (part.n_ == 0) return;
  // Chan, Golub & LeVeque (1983): the mean and the squares of two parts.
  const auto n = static_cast<double>(n_), m = static_cast<double>(part.n_);
  const double delta = part.target_mean_ - target_mean_;
  target_mean_ += delta * m / (n + m);
  target_m2_ += part.target_m2_ + delta * delta * n * m / (n + m);
  n_ += part.n_;
  squared_ += part.squared_;
  absolute_ += part.absolute_;
  log_density_ += part.log_density_;
  crps_ += part.crps_;
  inside90_ += part.inside90_;
  inside95_ += part.inside95_;
  has_sd_ = has_sd_ && part.has_sd_;
  normal_ = normal_ && part.normal_;
}

RegressionScores ScoreKeeper::scores() const {
  RegressionScores s;
  s.n = n_;
  s.has_sd = has_sd_;
  if (n_ == 0) return s;
  const auto n = static_cast<double>(n_);
  s.rmse = std::sqrt(squared_ / n);
  s.mae = absolute_ / n;
  if (target_m2_ > 0) s.smse = squared_ / target_m2_;
  s.nll = -log_density_ / n;
  s.crps = normal_ ? crps_ / n : std::numeric_limits<double>::quiet_NaN();
  s.coverage90 = static_cast<double>(inside90_) / n;
  s.coverage95 = static_cast<double>(inside95_) / n;
  return s;
}

}  // namespace mercer::models
