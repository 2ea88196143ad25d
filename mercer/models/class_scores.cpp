#include "mercer/models/class_scores.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer::models {
namespace {

constexpr int kBins = 10;
// A class that was given no chance at all counts as one in 1e300, not as an infinite loss.
constexpr double kLeastProbability = 1e-300;

// The share of pairs (member, other) that the scores rank rightly, ties counting half.
std::optional<double> area(const std::vector<double>& scores, const std::vector<Index>& truth,
                           Index member) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  double members = 0, rank_sum = 0;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && scores[order[last]] == scores[order[first]]) ++last;
    const double rank = 0.5 * static_cast<double>(first + last + 1);  // mean of first+1 .. last
    for (; first < last; ++first)
      if (truth[order[first]] == member) {
        ++members;
        rank_sum += rank;
      }
  }
  const double others = static_cast<double>(order.size()) - members;
  if (members == 0 || others == 0) return {};
  return (rank_sum - 0.5 * members * (members + 1)) / (members * others);
}

}  // namespace

void ClassScoreKeeper::add(ConstMatrixView probabilities, const std::vector<Index>& truth) {
  const Index m = probabilities.rows(), classes = probabilities.cols();
  if (static_cast<Index>(truth.size()) != m)
    throw DimensionMismatch("class scores: labels", static_cast<Index>(truth.size()), "rows", m);
  if (bins_.empty()) {
    bins_.resize(kBins);
    class_scores_.resize(static_cast<std::size_t>(classes));
  }
  for (Index i = 0; i < m; ++i) {
    const Index right = truth[static_cast<std::size_t>(i)];
    Index label = 0;
    const double confidence = probabilities.row(i).maxCoeff(&label);
    wrong_ += label != right;
    log_probability_ += std::log(std::max(probabilities(i, right), kLeastProbability));
    for (Index c = 0; c < classes; ++c) {
      brier_ += std::pow(probabilities(i, c) - (c == right ? 1.0 : 0.0), 2);
      class_scores_[static_cast<std::size_t>(c)].push_back(probabilities(i, c));
    }
    auto& bin = bins_[static_cast<std::size_t>(
        std::clamp(static_cast<int>(confidence * kBins), 0, kBins - 1))];
    ++bin.n;
    bin.confidence += confidence;
    bin.accuracy += label == right;
  }
  n_ += m;
  truth_.insert(truth_.end(), truth.begin(), truth.end());
}

void ClassScoreKeeper::add(const ClassScoreKeeper& part) {
  if (part.n_ == 0) return;
  bins_.resize(kBins);
  class_scores_.resize(part.class_scores_.size());
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    bins_[b].n += part.bins_[b].n;
    bins_[b].confidence += part.bins_[b].confidence;
    bins_[b].accuracy += part.bins_[b].accuracy;
  }
  for (std::size_t c = 0; c < class_scores_.size(); ++c)
    class_scores_[c].insert(class_scores_[c].end(), part.class_scores_[c].begin(),
                            part.class_scores_[c].end());
  n_ += part.n_;
  wrong_ += part.wrong_;
  log_probability_ += part.log_probability_;
  brier_ += part.brier_;
  truth_.insert(truth_.end(), part.truth_.begin(), part.truth_.end());
}

ClassificationScores ClassScoreKeeper::scores() const {
  ClassificationScores out;
  out.n = n_;
  if (n_ == 0) return out;
  const auto n = static_cast<double>(n_);
  out.error_rate = static_cast<double>(wrong_) / n;
  out.nll = -log_probability_ / n;
  // Two classes miss by the same: one of them is enough.
  out.brier = brier_ / n * (class_scores_.size() == 2 ? 0.5 : 1.0);
  for (int b = 0; b < kBins; ++b) {
    auto bin = bins_[static_cast<std::size_t>(b)];
    if (bin.n == 0) continue;
    bin.low = static_cast<double>(b) / kBins;
    bin.high = static_cast<double>(b + 1) / kBins;
    bin.confidence /= static_cast<double>(bin.n);
    bin.accuracy /= static_cast<double>(bin.n);
    out.calibration_error +=
        static_cast<double>(bin.n) / n * std::abs(bin.confidence - bin.accuracy);
    out.calibration.push_back(bin);
  }
  // Two classes have one curve; of more the mean over those that can be told.
  const std::size_t first = class_scores_.size() == 2 ? 1 : 0;
  double sum = 0;
  for (std::size_t c = first; c < class_scores_.size(); ++c) {
    const auto one = area(class_scores_[c], truth_, static_cast<Index>(c));
    if (!one) return out;
    sum += *one;
  }
  out.auc = sum / static_cast<double>(class_scores_.size() - first);
  return out;
}

}  // namespace mercer::models
