// Models with a likelihood that is not Gaussian and their scores, in words and as JSON.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/record.hpp"
#include "cli/variances.hpp"
#include "mercer/models/latent.hpp"

namespace mercer::cli {

inline constexpr const char* kNoBound =
    "the likelihood is not log-concave: the mode is a local one";

std::string latent_hyperparameters_text(const models::LatentModel& model);
std::string latent_certificate_text(const models::LatentModel& model);
/// "Gaussian process, Laplace's approximation, kernel rbf, one class against the rest".
std::string latent_model_text(const models::LatentModel& model);
/// "bernoulli-logit, classes 0, 1", "poisson".
std::string latent_target_text(const models::LatentModel& model);
std::string class_scores_text(const models::ClassificationScores& scores);

/// classes, and multiclass where there are more than two; nothing when the target is a number.
void put_classes(Json& json, const models::LatentModel& model);
Json latent_hyperparameters_json(const models::LatentModel& model);
Json latent_certificate_json(const models::LatentModel& model);
Json class_scores_json(const models::ClassificationScores& scores);
/// As scores_json, without what only a Gaussian has.
Json latent_scores_json(const models::RegressionScores& scores);

/// What a row is called in errors: "new.csv: line 3".
using RowName = std::function<std::string(Index)>;
/// The places of targets among the classes. Throws DataError naming the row of one that is no
/// class.
std::vector<Index> class_places(const models::Classes& classes, ConstVectorView target,
                                const RowName& name);

/// Scores of a labelled stream, whichever kind the model has.
class LatentScores {
 public:
  explicit LatentScores(const models::LatentModel& model) : model_(model) {}
  void add(const models::LatentPredictor& predictor, const models::LatentPredictions& predictions,
           ConstVectorView target, const RowName& name);
  std::string text() const;
  Json json() const;
  Index rows() const;

 private:
  const models::LatentModel& model_;
  models::ClassScoreKeeper classes_;
  models::LatentScoreKeeper numbers_;
};

/// Runs `body`; what mends a factorisation that fails in it is said for likelihoods without
/// --noise.
template <class Body>
auto latent_factorisations(Body&& body) {
  try {
    return body();
  } catch (const NotPositiveDefinite& error) {
    throw Failure(
        exit_tolerance,
        std::string(error.what()) +
            " (the latent function varies too much for double precision: a smaller "
            "--signal-variance, a shorter --lengthscale or a rougher --kernel mend that)");
  }
}

using AnyModel = std::variant<models::RegressionModel, models::LatentModel>;
/// A file that cannot be opened is exit code 6 like one that cannot be read.
AnyModel load_any_model(const std::string& path);

}  // namespace mercer::cli
