// Scores of class probabilities, accumulated block by block.
#pragma once

#include <optional>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// Predictions whose confidence lies in one tenth of [0, 1].
struct CalibrationBin {
  double low = 0, high = 0;
  Index n = 0;
  double confidence = 0;  // mean probability of the label predicted
  double accuracy = 0;    // share that was right
};

struct ClassificationScores {
  Index n = 0;
  double error_rate = 0;
  double nll = 0;  // mean negative log probability of the true class
  /// Mean squared distance of the probability of the second class from the truth; of more than two
  /// classes summed over them.
  double brier = 0;
  /// Area under the ROC curve; of several classes the mean of one against the rest. Unset when
  /// some class, or all others, are not among the rows.
  std::optional<double> auc;
  double calibration_error = 0;  // mean over rows of |confidence - accuracy| of their bin
  std::vector<CalibrationBin> calibration;  // without those that are empty
};

class ClassScoreKeeper {
 public:
  /// Probabilities are M x classes; `truth` are places of classes.
  void add(ConstMatrixView probabilities, const std::vector<Index>& truth);
  /// What another has gathered.
  void add(const ClassScoreKeeper& part);
  ClassificationScores scores() const;

 private:
  Index n_ = 0, wrong_ = 0;
  double log_probability_ = 0, brier_ = 0;
  std::vector<CalibrationBin> bins_;
  std::vector<std::vector<double>> class_scores_;  // per class, for the ranks of the ROC curve
  std::vector<Index> truth_;
};

}  // namespace mercer::models
MERCER_API_END
