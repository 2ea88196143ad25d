// Scores of probabilistic predictions, accumulated block by block in target units.
#pragma once

#include <optional>
#include <span>

#include "mercer/core/types.hpp"
#include "mercer/models/log_normal.hpp"

MERCER_API_BEGIN
namespace mercer::models {

struct RegressionScores {
  Index n = 0;
  double rmse = 0;
  double mae = 0;
  /// Mean squared error over the variance of the test targets; unset when they do not vary.
  std::optional<double> smse;
  /// False: no standard deviations were given, and what follows is not known.
  bool has_sd = true;
  double nll = 0;         // mean negative log density of y, marginal per point
  double crps = 0;        // continuous ranked probability score; normal and log-normal only
  double coverage90 = 0;  // share of targets inside the central 90 % interval
  double coverage95 = 0;
};

/// Predictions that are not normal: what their likelihood says of each row.
struct SpreadPredictions {
  ConstVectorView mean, q025, q05, q95, q975;
  ConstVectorView log_density;  // of the target
  /// Their scores where these are known; empty otherwise.
  Vector crps = {};
};

class ScoreKeeper {
 public:
  /// `sd_obs` may be empty, either for all blocks or for none.
  void add(ConstVectorView target, ConstVectorView mean, ConstVectorView sd_obs);
  /// The same with intervals and densities that are not those of a normal distribution.
  void add(ConstVectorView target, const SpreadPredictions& predictions);
  /// The same of log-normal predictions: those of log y.
  void add_log_normal(ConstVectorView target, std::span<const LogNormal> predictions);
  /// What another has gathered.
  void add(const ScoreKeeper& part);
  RegressionScores scores() const;

 private:
  void add_error(double target, double mean);

  Index n_ = 0;
  double squared_ = 0, absolute_ = 0, log_density_ = 0, crps_ = 0;
  Index inside90_ = 0, inside95_ = 0;
  bool has_sd_ = true, normal_ = true;
  double target_mean_ = 0, target_m2_ = 0;  // Welford
};

}  // namespace mercer::models
MERCER_API_END
