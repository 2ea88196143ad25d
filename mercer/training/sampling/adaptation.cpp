#include "mercer/training/sampling/adaptation.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/training/sampling/log_posterior.hpp"

namespace mercer::training {
namespace {

// Constants of dual averaging that Hoffman & Gelman recommend.
constexpr double kDelay = 10, kForgetting = 0.75;
// Shares of the warm-up before the first window and after the last, and the shortest window.
constexpr double kBeforeWindows = 0.15, kAfterWindows = 0.3, kFirstWindow = 0.05;
constexpr Index kLeastWindow = 25, kExtraDraws = 5;

// Where windows begin and end: each twice as long as the one before, the last as long as fits.
std::vector<Index> window_ends(Index warmup) {
  const auto share = [&](double part) {
    return static_cast<Index>(std::floor(part * static_cast<double>(warmup)));
  };
  const Index last = warmup - share(kAfterWindows);
  Index at = share(kBeforeWindows), length = std::max(kLeastWindow, share(kFirstWindow));
  if (at + length > last) return {};
  std::vector<Index> ends = {at};
  while (at < last) {
    const bool room_for_next = at + length + 2 * length <= last;
    at = room_for_next ? at + length : last;
    ends.push_back(at);
    length *= 2;
  }
  return ends;
}

}  // namespace

void StepSize::restart(double step) {
  step_ = mean_ = step;
  centre_ = std::log(rule_.reach * step);
  error_ = 0;
  count_ = 0;
}

void StepSize::learn(double acceptance) {
  const auto t = static_cast<double>(++count_);
  const double weight = 1 / (t + kDelay);
  error_ = (1 - weight) * error_ + weight * (rule_.acceptance - acceptance);
  const double log_step = centre_ - std::sqrt(t) / rule_.shrinkage * error_;
  const double rate = std::pow(t, -kForgetting);
  mean_ = std::exp(rate * log_step + (1 - rate) * std::log(mean_));
  step_ = std::exp(log_step);
}

void StepSize::visit_state(Archive& archive) {
  archive.number("step_now", step_);
  archive.number("step_mean", mean_);
  archive.number("step_centre", centre_);
  archive.number("step_error", error_);
  archive.number("step_count", count_);
}

Adaptation::Adaptation(const Setting& setting)
    : setting_(setting),
      ends_(window_ends(setting.warmup)),
      root_(covariance_root(setting.covariance)),
      covariance_(setting.covariance),
      step_(setting.first_step, setting.rule) {}

void Adaptation::learn(Index iteration, const Vector& phi, double acceptance) {
  if (iteration > setting_.warmup) return;
  step_.learn(acceptance);
  if (ends_.empty() || iteration <= ends_.front() || iteration > ends_.back()) return;
  window_.push_back(phi);
  if (std::find(ends_.begin(), ends_.end(), iteration) != ends_.end()) end_window();
}

void Adaptation::end_window() {
  const auto n = static_cast<double>(window_.size());
  Vector mean = Vector::Zero(covariance_.rows());
  for (const auto& draw : window_) mean += draw / n;
  Matrix scatter = Matrix::Zero(mean.size(), mean.size());
  for (const auto& draw : window_) scatter += (draw - mean) * (draw - mean).transpose();
  window_.clear();
  const auto before = static_cast<double>(mean.size() + kExtraDraws);
  covariance_ = (scatter + before * covariance_) / (n - 1 + before);
  root_ = covariance_root(covariance_);
  step_.restart(setting_.restart_step ? setting_.first_step : step_.settled());
}

void Adaptation::visit_state(Archive& archive) {
  archive.array("covariance", covariance_);
  archive.array("root", root_);
  archive.columns("window", window_);
  step_.visit_state(archive);
}

}  // namespace mercer::training
