// From data to a certified model: Gaussian-process regression, classes, counts and numbers with
// outliers, and the same without an uncertainty (kernel ridge and kernel logistic regression).
//
//   const auto data = data::read_dataset("concrete.csv", {});
//   auto fit = models::fit(data, {.method = {.kernel = "rbf"}});
//   fit.model.save("concrete.mcr");
#pragma once

#include "mercer/core/progress.hpp"
#include "mercer/data/streamed_data.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/kernel_machine.hpp"
#include "mercer/models/names.hpp"
#include "mercer/models/prediction_scores.hpp"
#include "mercer/training/report.hpp"

MERCER_API_BEGIN
namespace mercer::models {

struct FitOptions {
  MethodOptions method;
  TrainOptions train;
  ApproximationOptions approximation;  // none asked for: the exact posterior
  bool standardize = true;
  bool merge = true;       // rows with the same inputs become one, exactly (merging.hpp)
  bool mean_only = false;  // kernel ridge or logistic regression: no uncertainty of f
  std::string likelihood = "gaussian";  // a text of likelihoods::make
  Classes classes = {};                 // those of the target; none: the target is a number
  /// The log evidence of the model, which takes some twenty block products where learning did not
  /// leave it behind. Predictions do not need it.
  bool evidence = true;
  /// The gradient of that where learning did not leave it behind and the system is factored, which
  /// takes two more factorisations.
  bool gradient = false;
};

/// Likelihood and mean_only follow from what the user asks for (task, method, likelihood) and the
/// data, so they have no words of their own; nor has standardize, which is a field of the data.
template <class Visitor>
void visit_fields(FitOptions& o, Visitor&& field) {
  visit_fields(o.method, field);
  visit_fields(o.train, field);
  visit_fields(o.approximation, field);
  field(
      {"merge", "", "merge rows with the same inputs into one, which changes nothing but the time"},
      o.merge, Any{});
  field("standardize", o.standardize, Any{});
  field("mean_only", o.mean_only, Any{});
  field("likelihood", o.likelihood, Any{});
  field({"evidence", "", "", "", Affects::nothing}, o.evidence, Any{});
  field(
      {"gradient", "",
       "with `train=none` and `solver=cholesky`: the gradient of the log likelihood as well, which "
       "takes two more factorisations"},
      o.gradient, Any{});
}

/// Scores of the hyperparameters that a step of learning has reached. `seconds` are those of
/// learning only.
struct TracePoint {
  int step = 0;
  double seconds = 0;
  Scores scores;
};

/// Rows to watch the learning on: predicted from after every step, their time not counted.
struct Validation {
  Matrix inputs;  // encoded like the data, raw units
  Vector target;
  data::NoiseColumns noise = {};
  std::function<void(const TracePoint&)> on_step;
};

struct FitResult {
  KernelMachine model;
  Plan plan;
  TrainReport training;
  LikelihoodValue likelihood;
  Index merged_rows = 0;  // rows that went into others with the same inputs
  std::vector<std::string> warnings;
  inference::SystemReport solve;       // of the weights; with Laplace of all Newton steps
  int newton_steps = 0, halvings = 0;  // Laplace only
  // Laplace, where rounding keeps the residual of the mode above the tolerance: how far the latent
  // means are from the mode, in posterior standard deviations, to first order.
  std::optional<double> newton_decrement;
  double jitter = 0;
  preconditioners::BuildReport preconditioner;  // without a name when there is none
  double build_seconds = 0;
  double seconds = 0;
  inference::State approximation;  // base points and blocks that an approximation learned with
  // Rows that were read in passes (Plan::streamed):
  int passes = 0;              // over all rows, that of the survey among them
  double rows_per_second = 0;  // of these passes, arithmetic included; 0: there was none

  /// Learning was told to stop; the model is that of the best values until then.
  bool interrupted() const { return training.stop == StopReason::interrupted; }
};

/// Plans, learns, solves and certifies. Told to stop by the progress callback, which
/// is also asked between tiles of long work: learning ends with the values so far, of which the
/// model is still made (Progress::ends_stage); before there are any, or after learning, it throws
/// Interrupted. A checkpoint holds what was learned so far, and the same call goes on from it.
/// Throws DataError when the target is not what the likelihood can observe, InvalidArgument when
/// options do not go with the likelihood.
FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress = {}, const Validation* validation = nullptr);

/// The same over rows that stay in their file (data::survey), by an approximation that learns from
/// rows in passes: hyperparameters and base points from the sample, then at most three gradients of
/// the evidence of all rows (training/full_rows.hpp). The validation sees models of the sample.
FitResult fit(const data::StreamedData& data, const FitOptions& options,
              const ProgressCallback& progress = {}, const Validation* validation = nullptr);

/// The posterior of other rows under the hyperparameters and the scaling of a model that was
/// learned: nothing is learned, and the scale and the values that options give are not used.
/// `approximation`, where it is not empty, is that of a fit to the same rows.
FitResult refit(const KernelMachine& learned, const data::Dataset& data, FitOptions options,
                const ProgressCallback& progress = {}, const inference::State& approximation = {});

/// What fit would do; refuses what that refuses.
Plan plan_fit(const data::Dataset& data, const FitOptions& options);
Plan plan_fit(const data::StreamedData& data, const FitOptions& options);

}  // namespace mercer::models
MERCER_API_END
