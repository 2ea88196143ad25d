// Predictions of a kernel machine, for numbers and for classes: its systems are built once, then
// any number of rows is asked block by block.
//
//   models::Predictor predictor(models::KernelMachine::load("concrete.mcr"), {});
//   const auto p = predictor.predict(inputs);   // mean, sd_obs, latent_sd, error_bound, ...
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/progress.hpp"
#include "mercer/data/noise_columns.hpp"
#include "mercer/models/kernel_machine.hpp"
#include "mercer/models/names.hpp"
#include "mercer/models/sd_error.hpp"

MERCER_API_BEGIN
namespace mercer::models {

struct PredictOptions {
  VarianceOptions variance = VarianceOptions();  // spelt out: else GCC 12 warns where {} is passed
  std::optional<std::uint64_t> memory;
  std::optional<double> tolerance;  // of the solves for variances and draws; unset: from the noise
  std::string solver = "auto";
  std::vector<double> quantiles = {};  // probabilities; none: 0.05 and 0.95
};

template <class Visitor>
void visit_fields(PredictOptions& o, Visitor&& field) {
  visit_fields(o.variance, field);
  field({"solver", "NAME", "how the systems of variances and draws are solved"}, o.solver,
        OneOf{planning::solver_names()});
  field({"tolerance", "E", "of iterative solves for variances and draws", "from the noise"},
        o.tolerance, BelowOne{});
  field(planning::memory_field(), o.memory, Bytes{});
  field({"quantiles", "P,Q", "probabilities of the quantiles of y, in place of q05 and q95",
         "0.05,0.95"},
        o.quantiles, BelowOne{});
}

/// "q05" of 0.05, "q50" of 0.5, "q025" of 0.025: the digits after the point, two at least.
std::string quantile_name(double p);

/// A row so far from the training data that its prediction is not a finite number.
struct PredictionOverflow : DataError {
  PredictionOverflow(Index row_index, const std::string& why);
  Index row;           // 0-based, of the inputs that were given
  std::string reason;  // what happened and what to do, without the row
};

/// A block of M predictions of a model with C latent functions; every number is finite.
struct Predictions {
  // Of f, in target units where f is a number like y (in those of log y where the logarithm was
  // learned); the latent mean includes its offset.
  Matrix latent_mean, latent_sd;  // M x C; latent_sd is empty without variances
  /// M x C: of the latent mean; no bound unless rigorous. Empty with an approximation.
  Matrix error_bound;
  Matrix error_estimate;  // M x C: what its error probably is; empty when not known
  Matrix samples;  // M x (C n): n joint draws of each function, or of exp(f); none unless asked for
  // Of y. Numbers: target units.
  Vector mean;  // where the logarithm was learned, and without variances: the median
  /// Gaussian noise: distance of `mean` from the exact one, at most and probably, and the standard
  /// deviation of y without noise: those of f, unless the logarithm was learned. Empty for others.
  Vector mean_error_bound, mean_error_estimate, noise_free_sd;
  Vector sd_obs, q025, q05, q95, q975;  // spread and quantiles; empty without variances
  Matrix quantiles;                     // M x Q, those of PredictOptions::quantiles
  Matrix probabilities;                 // classes: M x classes, rows sum to one
  /// Where probabilities were found by random numbers, their largest standard error; zero: exact to
  /// rounding. Unset: by a formula whose error is not known.
  std::optional<double> probability_error = 0.0;
  /// No latent_sd is further than this from the exact one; unset when they are approximate.
  std::optional<double> sd_error_bound = 0.0;
  /// When they are approximate: their error, measured on a random sample of these rows.
  std::optional<SdError> sd_error;
  Index clamped_variances = 0;  // raised to the floor 1e-12 k** because of rounding
  double jitter = 0;            // inference::Moments::jitter, on the scale of the model
  std::int64_t matvecs = 0;
  /// A model of several draws of hyperparameters: the predictions of each, which the ones above are
  /// mixed from (mixture.hpp). Empty for one draw.
  std::vector<Predictions> parts = {};

  Index rows() const { return latent_mean.rows(); }
};

/// Any number of threads may ask one Predictor at the same time. Each call computes on all threads,
/// so that calls wait for each other; do not call it from inside its own progress callback.
class Predictor {
 public:
  /// The systems of all latent functions are built here and kept, unless their memory does not
  /// suffice for more than one at a time.
  Predictor(KernelMachine model, PredictOptions options);
  ~Predictor();
  const KernelMachine& model() const;
  /// Probabilities of Predictions::quantiles; none for classes and without variances.
  const std::vector<double>& quantiles() const;
  /// The plan of the first latent function, or of all when they are coupled; of the first draw.
  const Plan& plan() const;
  /// Rows of raw inputs (the model's columns, encoded, unscaled), any number of them; worked off
  /// in blocks of constant memory. Throws Interrupted, PredictionOverflow, or Error when a solve
  /// for variances or draws fails.
  /// `noise` is what is known of the observations that sd_obs is about: unset, each is a single one
  /// with the learned noise. With Gaussian noise only.
  Predictions predict(ConstMatrixView inputs, const ProgressCallback& progress = {},
                      const data::NoiseColumns& noise = {}) const;

  /// The same for a piece of a longer stream: approximate standard deviations are not checked here,
  /// the rows join the sample that sd_error checks at the end.
  RowSample row_sample() const;
  Predictions predict(ConstMatrixView inputs, RowSample& sample,
                      const ProgressCallback& progress = {},
                      const data::NoiseColumns& noise = {}) const;
  /// The error of the latent function where it is largest. Unset when variances are exact, not
  /// asked for, or not to be checked.
  std::optional<SdError> sd_error(const RowSample& sample,
                                  const ProgressCallback& progress = {}) const;

  /// log p(y | data) of observed numbers (raw units) under these predictions, M.
  /// Throws DataError naming the row when the likelihood cannot observe one.
  Vector log_density(const Predictions& predictions, ConstVectorView target) const;

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::models
MERCER_API_END
