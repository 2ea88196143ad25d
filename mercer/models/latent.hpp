// Gaussian processes with a likelihood that is not Gaussian, from data to predictions: classes
// (two, or many by one-vs-rest), counts, numbers with outliers. And kernel logistic regression,
// which is the mode of a logit model without its uncertainty.
//
//   const auto data = data::read_dataset("heart.csv", {});
//   auto fit = models::fit_latent(data, {.likelihood = "bernoulli-logit"});
//   fit.model.save("heart.mcr");
//
//   models::LatentPredictor predictor(models::LatentModel::load("heart.mcr"), {});
//   const auto p = predictor.predict(inputs);   // probabilities, latent mean and sd
#pragma once

#include "mercer/inference/laplace.hpp"
#include "mercer/models/class_scores.hpp"
#include "mercer/models/classes.hpp"
#include "mercer/models/regression.hpp"

namespace mercer::models {

/// The latent mean at x* is within sqrt(k**) times the residual of the one at the exact mode, when
/// the likelihood is log-concave.
struct LatentCertificate {
  Vector residual;              // sqrt(r'K r), r = g - a, of every latent function; true, in double
  double mean_error_bound = 0;  // sqrt(k**) times it, at its largest over the training points
  bool rigorous = true;         // false: the likelihood is not log-concave, the mode a local one
};

/// Everything a model file holds.
struct LatentModel {
  data::Schema schema;
  data::Scaling scaling;  // of the target only when the likelihood allows it
  Classes classes;        // empty: the target is a number
  bool map_only = false;  // kernel logistic regression: no uncertainty of f
  inference::Problem problem{kernels::Kernel::parse("constant", 1), nullptr};
  Matrix x;       // scaled inputs, N x d
  Matrix a;       // N x C: latent mean k*'a + offset
  Matrix w;       // N x C: latent variance k** - k*'(K + W^-1)^-1 k*
  Vector offset;  // C
  LatentCertificate certificate;
  MethodOptions method;
  nlohmann::json record;

  bool classifies() const { return classes.count() > 0; }
  void save(const std::string& path) const;
  static LatentModel load(const std::string& path);
  static LatentModel from_file(ArrayFile file, const std::string& name);
};

struct LatentFitOptions {
  MethodOptions method;
  TrainOptions train;
  bool standardize = true;
  std::string likelihood = "bernoulli-logit";  // a text of likelihoods::make
  bool map_only = false;
};

/// Rows to watch the learning on, as in Validation.
struct LatentTracePoint {
  int step = 0;
  double seconds = 0;
  ClassificationScores scores;
};
struct LatentValidation {
  Matrix inputs;
  Vector target;
  std::function<void(const LatentTracePoint&)> on_step;
};

struct LatentFitResult {
  LatentModel model;
  Plan plan;
  TrainReport training;
  LikelihoodValue likelihood;
  StopReason stop = StopReason::converged;  // of the mode
  int newton_steps = 0, halvings = 0, iterations = 0;
  std::int64_t matvecs = 0;
  std::vector<std::string> warnings;
  preconditioners::BuildReport preconditioner;
  double solve_seconds = 0;
  double seconds = 0;

  bool interrupted() const { return training.stop == StopReason::interrupted; }
};

/// Throws DataError when the target is not what the likelihood can observe. `classes`: those of the
/// target, or none when it is a number.
LatentFitResult fit_latent(const data::Dataset& data, const LatentFitOptions& options,
                           const Classes& classes, const ProgressCallback& progress = {},
                           const LatentValidation* validation = nullptr);

/// What fit_latent would do; refuses what that refuses.
Plan plan_latent_fit(const data::Dataset& data, const LatentFitOptions& options,
                     const Classes& classes);

/// A block of predictions. Classes: `probabilities`. Numbers: mean, sd_obs and quantiles of y.
struct LatentPredictions {
  Matrix probabilities;           // M x classes, rows sum to one
  Vector mean, sd_obs;            // of y, target units
  Vector q025, q05, q95, q975;    // quantiles of y
  Matrix latent_mean, latent_sd;  // M x C; of f, the offset included, in target units if it has any
  Matrix error_bound;             // M x C: of the latent mean; no bound unless rigorous
  std::optional<double> sd_error_bound = 0.0;  // of latent_sd, as in Predictions
  std::optional<SdError> sd_error;
  Index clamped_variances = 0;
  std::int64_t matvecs = 0;
  std::string variance = "none";  // exact, vecchia, samples or none
};

class LatentPredictor {
 public:
  LatentPredictor(LatentModel model, PredictOptions options);
  ~LatentPredictor();
  const LatentModel& model() const;
  /// As Predictor::predict.
  LatentPredictions predict(ConstMatrixView inputs, const ProgressCallback& progress = {}) const;
  /// Of a number: log p(y | data) of observed targets (raw units) under these predictions, M.
  /// Throws DataError naming the row when the likelihood cannot observe one.
  Vector log_density(const LatentPredictions& predictions, ConstVectorView target) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Scores of numbers: as RegressionScores, densities and intervals those of the likelihood; crps
/// is not known.
class LatentScoreKeeper {
 public:
  void add(ConstVectorView target, const LatentPredictions& predictions,
           ConstVectorView log_density);
  RegressionScores scores() const;

 private:
  ScoreKeeper plain_;
  Index n_ = 0, inside90_ = 0, inside95_ = 0;
  double log_density_ = 0;
};

}  // namespace mercer::models
