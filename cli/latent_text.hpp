// Models with a likelihood that is not Gaussian and their scores, in words and as JSON.
#pragma once

#include <string>
#include <variant>

#include "cli/record.hpp"
#include "cli/variances.hpp"
#include "mercer/models/latent.hpp"

namespace mercer::cli {

std::string latent_hyperparameters_text(const models::LatentModel& model);
std::string latent_certificate_text(const models::LatentModel& model);
/// "bernoulli-logit, classes 0, 1", "poisson".
std::string latent_target_text(const models::LatentModel& model);
std::string class_scores_text(const models::ClassificationScores& scores);

Json latent_hyperparameters_json(const models::LatentModel& model);
Json latent_certificate_json(const models::LatentModel& model);
Json class_scores_json(const models::ClassificationScores& scores);
/// As scores_json, without what only a Gaussian has.
Json latent_scores_json(const models::RegressionScores& scores);

/// What a stream of predictions was like as a whole.
struct LatentTotals {
  Index rows = 0;
  double largest_bound = 0;
  VarianceRecord variances;
  Index clamped = 0;
  std::int64_t matvecs = 0;

  void add(const models::LatentPredictions& predictions);
};

/// Scores of a labelled stream, whichever kind the model has.
class LatentScores {
 public:
  explicit LatentScores(const models::LatentModel& model) : model_(model) {}
  /// `lines` name the rows in errors; empty: they are counted from 1.
  void add(const models::LatentPredictor& predictor, const models::LatentPredictions& predictions,
           ConstVectorView target, const std::vector<Index>& lines);
  std::string text() const;
  Json json() const;
  Index rows() const;

 private:
  const models::LatentModel& model_;
  models::ClassScoreKeeper classes_;
  models::LatentScoreKeeper numbers_;
};

using AnyModel = std::variant<models::RegressionModel, models::LatentModel>;
/// A file that cannot be opened is exit code 6 like one that cannot be read.
AnyModel load_any_model(const std::string& path);

}  // namespace mercer::cli
