// Gaussian-process regression from data to certified predictions.
//
//   const auto data = data::read_dataset("concrete.csv", {});
//   auto fit = models::fit(data, {.method = {.kernel = "rbf"}});
//   fit.model.save("concrete.mcr");
//
//   models::Predictor predictor(models::RegressionModel::load("concrete.mcr"), {});
//   const auto p = predictor.predict(inputs);   // mean, sd_latent, sd_obs, error_bound
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/data/scaling.hpp"
#include "mercer/inference/exact_evidence.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/array_file.hpp"
#include "mercer/models/options.hpp"
#include "mercer/models/plan.hpp"
#include "mercer/models/scores.hpp"
#include "mercer/models/sd_error.hpp"

namespace mercer::models {

/// The certificate of a solved problem. With r = y - A beta - H w, for every x*
///   |mean(x*) - exact mean(x*)| <= sqrt(k**) |D^-1/2 r| + trend and rounding terms,
/// D the noise variances: |r|/sqrt(s2) when they are equal.
struct Certificate {
  double relative_residual = 0;  // |r| / |y|, true, double precision
  double residual_norm = 0;      // |r|, standardised units
  double trend_defect = 0;       // |M^-1/2 A'w|, M = A'H^-1 A: how far beta is from optimal
  double mean_error_bound = 0;   // the bound at its largest over the training points, target units
  double trend_residual = 0;  // at least |H^-1/2 R M^-1/2|, R = A - H B, B the solves of the trend
  double weighted_residual = 0;  // |D^-1/2 r|: the residual against the noise of each row
};

/// Everything a model file holds.
struct RegressionModel {
  data::Schema schema;
  data::Scaling scaling;
  inference::Problem problem{
      kernels::Kernel::parse("constant", 1), 1.0, inference::MeanKind::zero, {}};  // on scaled data
  linalg::Diagonal noise;  // D of H = K + D, jitter included
  Matrix x;                // scaled inputs, N x d, after merging
  inference::Weights weights;
  Certificate certificate;
  MethodOptions method;    // as given: predict uses it for its own plan
  nlohmann::json record;   // how it came about: options, training, likelihood, data hash
  bool mean_only = false;  // kernel ridge regression: no uncertainty of f

  void save(const std::string& path) const;
  /// Throws IoError when it cannot be opened, ModelFileError when it cannot be trusted.
  static RegressionModel load(const std::string& path);
  /// From a container already read; `name` is for messages.
  static RegressionModel from_file(ArrayFile file, const std::string& name);
};

struct LikelihoodValue {
  bool known = false;
  double value = 0, low = 0, high = 0;  // on the scale of the model; exact methods have low = high
  std::string method;                   // "cholesky", "cholesky-subset", "lanczos" or "none"
  std::string reason;                   // why it is not known
  double probe_error = 0;               // lanczos: standard error from the probes
  double solver_error = 0;              // lanczos: what its solves may still hide
  Index rows = 0;
  Vector gradient;  // in the log parameters, at the values kept; empty when not computed
};

/// One exact gradient of a training by solves, and what was known after it.
struct TrainStep {
  int number = 0;  // from 1
  double seconds = 0;
  double gradient_norm = 0;
  std::optional<double> predicted_gain;  // lbfgs: log likelihood still to be gained
  std::optional<double> noise_gain;      // what the noise of the gradient alone would show
  double tolerance = 0;                  // of the solves
  StopReason stop = StopReason::converged;
  double relative_residual = 0;  // of the solves, the worst column
  int iterations = 0;
  std::int64_t matvecs = 0;
};

struct TrainReport {
  int steps = 0;
  int evaluations = 0;
  int failed_evaluations = 0;  // not positive definite: the line search backed off
  int restarts = 0;
  int resumed_evaluations = 0;  // answered from the checkpoint
  StopReason stop = StopReason::converged;
  std::vector<std::string> bounds_hit;  // parameter names
  double seconds = 0;
  // By solves only (Plan::train_method is not "exact"):
  std::vector<TrainStep> history;   // of the gradients of this run
  int resumed_gradients = 0;        // before those, from the checkpoint
  Vector gradient, standard_error;  // of the last exact gradient
  int loose_gradients = 0;          // whose solves missed their tolerance
  Index raised_conditionals = 0;    // of the surrogate: not positive definite to rounding, mended
  int surrogate_evaluations = 0;
  std::int64_t matvecs = 0;

  Index gradients() const { return resumed_gradients + static_cast<Index>(history.size()); }
};

/// Called now and then: what is being done, how far it is (0..1, negative when unknown), detail.
struct Progress {
  std::string stage;
  double fraction = -1;
  std::string detail;
  /// Stopping now ends this stage only: what it has found so far is used.
  bool ends_stage = false;
};
using ProgressCallback = std::function<Action(const Progress&)>;

/// Scores of the hyperparameters that a step of learning has reached. `seconds` are those of
/// learning only.
struct TracePoint {
  int step = 0;
  double seconds = 0;
  RegressionScores scores;
};

struct FitOptions {
  MethodOptions method;
  TrainOptions train;
  bool standardize = true;
  bool merge = true;       // rows with the same inputs become one, exactly (merging.hpp)
  bool mean_only = false;  // kernel ridge regression: predictions without an uncertainty
};

/// Rows to watch the learning on: predicted from after every step, their time not counted.
struct Validation {
  Matrix inputs;  // encoded like the data, raw units
  Vector target;
  data::NoiseColumns noise = {};
  std::function<void(const TracePoint&)> on_step;
};

struct FitResult {
  RegressionModel model;
  Plan plan;
  TrainReport training;
  LikelihoodValue likelihood;
  Index merged_rows = 0;  // rows that went into others with the same inputs
  inference::SystemReport solve;
  double jitter = 0;
  preconditioners::BuildReport preconditioner;  // without a name when there is none
  double build_seconds = 0;
  double seconds = 0;

  /// Learning was told to stop; the model is that of the best values until then.
  bool interrupted() const { return training.stop == StopReason::interrupted; }
};

/// Plans, learns, solves and certifies. Throws Interrupted when the progress callback says stop
/// anywhere but while learning by solves, which keeps what it has (Progress::ends_stage); a
/// checkpoint holds what was learned so far, and the same call goes on from it.
FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress = {}, const Validation* validation = nullptr);

/// The kernel with the values that options give, and start values from the (scaled) data for the
/// rest; used by solve and plan as well.
inference::Problem start_problem(const MethodOptions& options, ConstMatrixView x,
                                 ConstVectorView y);

/// Inputs and target of a data set on the scale the model works on.
struct ScaledData {
  data::Scaling scaling;
  inference::Observations data;
};
/// Throws DataError when the target has one value only, or a spread whose square is no number, or
/// when noise or counts are not what they may be.
ScaledData scale(const data::Dataset& data, bool standardize);
/// The noise of rows on the scale the model works on.
inference::RowNoise row_noise(const data::NoiseColumns& columns, const data::Scaling& scaling);

struct SolveOutcome {
  Plan plan;
  inference::SystemReport report;
  Vector solution;  // H^-1 y on scaled data
  double jitter = 0;
  preconditioners::BuildReport preconditioner;  // without a name when there is none
  double build_seconds = 0;
  double mean_error_bound = 0;  // target units
};

/// One linear system with fixed hyperparameters: H a = y.
SolveOutcome solve(const data::Dataset& data, const FitOptions& options,
                   const ProgressCallback& progress = {});

struct PredictOptions {
  VarianceOptions variance = VarianceOptions();  // spelt out: else GCC 12 warns where {} is passed
  std::optional<std::uint64_t> memory;
  std::optional<double> tolerance;  // of the solves for variances and draws; unset: from the noise
  std::string solver = "auto";
};

/// A row so far from the training data that its prediction is not a finite number.
struct PredictionOverflow : DataError {
  PredictionOverflow(Index row_index, const std::string& why);
  Index row;           // 0-based, of the inputs that were given
  std::string reason;  // what happened and what to do, without the row
};

/// A block of predictions in target units; every number is finite.
struct Predictions {
  Vector mean, sd_latent, sd_obs, error_bound;
  Matrix samples;  // joint draws of f, one a column; none unless asked for
  /// No sd_latent is further than this from the exact one; unset when they are approximate.
  std::optional<double> sd_error_bound = 0.0;
  /// When they are approximate: their error, measured on a random sample of these rows.
  std::optional<SdError> sd_error;
  Index clamped_variances = 0;  // raised to the floor 1e-12 k** because of rounding
  std::int64_t matvecs = 0;

  /// mean + z sd_obs, z the standard normal quantile of p.
  Vector quantile(double p) const;
};

class Predictor {
 public:
  Predictor(RegressionModel model, PredictOptions options);
  ~Predictor();
  const RegressionModel& model() const;
  const Plan& plan() const;
  /// Rows of raw inputs (the model's columns, encoded, unscaled), any number of them; worked off
  /// in blocks of constant memory. Throws Interrupted, PredictionOverflow, or Error when a solve
  /// for variances or draws fails.
  /// `noise` is what is known of the observations that sd_obs is about: unset, each is a single one
  /// with the learned noise.
  Predictions predict(ConstMatrixView inputs, const ProgressCallback& progress = {},
                      const data::NoiseColumns& noise = {}) const;

  /// The same for a piece of a longer stream: approximate standard deviations are not checked here,
  /// the rows join the sample that sd_error checks at the end.
  RowSample row_sample() const;
  Predictions predict(ConstMatrixView inputs, RowSample& sample,
                      const ProgressCallback& progress = {},
                      const data::NoiseColumns& noise = {}) const;
  /// Unset when variances are exact, not asked for, or not to be checked.
  std::optional<SdError> sd_error(const RowSample& sample,
                                  const ProgressCallback& progress = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::models
