// Scores of predictions against what was observed, whatever the model predicts: numbers by the
// density and the intervals of the likelihood, classes by their probabilities.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mercer/models/class_scores.hpp"
#include "mercer/models/predictor.hpp"
#include "mercer/models/scores.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// Scores of numbers, or of classes: one of the two is set.
struct Scores {
  std::optional<RegressionScores> numbers;
  std::optional<ClassificationScores> classes;
  Index n() const { return classes ? classes->n : numbers ? numbers->n : 0; }
};

/// What a row is called in errors: "new.csv: line 3".
using RowName = std::function<std::string(Index)>;

/// Throws DataError naming the row of the first target that this model cannot observe.
void check_targets(const Classes& classes, const likelihoods::Likelihood& likelihood,
                   ConstVectorView target, const RowName& name);

/// Accumulates block by block. The predictor must outlive it.
class PredictionScores {
 public:
  explicit PredictionScores(const Predictor& predictor)
      : predictor_(predictor), classifies_(predictor.model().classifies()) {}
  /// Throws DataError naming the row of a target that the model cannot observe.
  void add(const Predictions& predictions, ConstVectorView target, const RowName& name);
  /// What another has gathered, with whatever predictor of the same kind; its own may be gone then.
  void add(const PredictionScores& part);
  Scores scores() const;

 private:
  void add_mixture(const Predictions& predictions, ConstVectorView target, const RowName& name);
  void add_log_normal(const Predictions& predictions, ConstVectorView target, const RowName& name);

  const Predictor& predictor_;
  bool classifies_;
  ClassScoreKeeper classes_;
  ScoreKeeper numbers_;
};

}  // namespace mercer::models
MERCER_API_END
