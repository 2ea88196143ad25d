// Cross-validation: how well a model predicts rows that it was not learned from.
//
//   const auto result = studies::cross_validate(data::read_dataset("concrete.csv"), {});
//   result.scores.numbers->rmse;    // of all rows, each predicted without its fold
//
//   k folds: each part is predicted by a fit to all others: scaling, hyperparameters (unless
//            `train=none`) and weights are those of the others, so that nothing is known of the
//            part. What stays that of the whole file are the levels of categories and the classes.
//   loo:     one row at a time, with the hyperparameters and the scaling of all rows. With Gaussian
//            noise in closed form (inference/exact/leave_one_out.hpp), else by refits of the
//            posterior, for few rows.
//   Cost:    k fits; loo: one fit and N^3 flops, or N posteriors.
//   When not: loo of hyperparameters that few rows decide, which it does not learn again; rows that
//            come in groups, unless the fold column keeps each group together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/models/fit.hpp"

MERCER_API_BEGIN
namespace mercer::studies {

struct CvOptions {
  models::FitOptions fit;
  std::string folds = "10";  // a number of parts, or "loo"; not used where the data have folds
};

template <class Visitor>
void visit_fields(CvOptions& o, Visitor&& field) {
  field({"folds", "K",
         "random parts of the rows, each predicted by a fit to the others; loo leaves one row out "
         "at a time, with the hyperparameters of all rows"},
        o.folds, Any{});
}

/// Rows that leave-one-out takes where each is a refit.
inline constexpr Index kMostRefits = 500;

/// One part and the fit to the others.
struct CvFold {
  std::string name;  // its number from 1, or its value in the fold column
  Index rows = 0;    // predicted
  models::Scores scores;
  std::optional<inference::Problem> problem;  // with the values that were learned, and
  data::Scaling scaling;                      // the scale that they are on
  inference::SystemChoice system;             // how its weights were found
  std::string variance;                       // and the variances
  StopReason stop = StopReason::converged;
  std::vector<std::string> warnings;
  double seconds = 0;

  bool converged() const { return stop == StopReason::converged; }
};

/// What the other folds say of every row, in the units of the target.
struct OutOfFold {
  std::vector<Index> fold;             // N, from 0; -1: not predicted, the run was stopped
  Vector mean;                         // N; of classes zero
  Vector latent_sd, sd_obs, q05, q95;  // empty without variances; classes: latent_sd is empty too
  Matrix probabilities;                // classes: N x classes
};

/// A score by its name: over all rows, and the standard error of its mean over the folds (for loo:
/// over the rows); unset where there is none.
struct ScoreSummary {
  std::string name;
  std::optional<double> value, standard_error;
};

struct CvResult {
  Index n = 0, d = 0;
  Index folds_asked = 0;       // N for loo
  bool closed_form = false;    // else by refits
  bool leave_one_out = false;  // with the hyperparameters of all rows
  std::vector<CvFold> folds;   // those done; loo: none
  Index rows_done = 0;
  models::Scores scores;  // pooled over all rows done
  std::vector<ScoreSummary> summary;
  OutOfFold rows;
  std::optional<models::FitResult> all_rows;  // loo: the fit that the hyperparameters are from
  bool interrupted = false;
  double seconds = 0;

  bool converged() const;
};

/// The number of folds, 0 for leave-one-out. Throws InvalidArgument unless it is "loo" or a whole
/// number of 2 or more.
Index number_of_folds(const std::string& folds);

/// Told to stop by the progress callback, it returns the folds that are done. Folds are those of
/// the data (Dataset::fold), or random by the seed of the method; those of classes have each class
/// in proportion. Throws DataError when there are more folds than rows, when the rest of a fold
/// cannot be learned from (one class, one value), InvalidArgument, DoesNotFit.
CvResult cross_validate(const data::Dataset& data, const CvOptions& options,
                        const ProgressCallback& progress = {});

/// The fold of each row, 0 .. folds - 1, by the seed; with classes each has its share of every one.
std::vector<Index> random_folds(const data::Dataset& data, Index folds, bool classes,
                                std::uint64_t seed);

/// Every score that is known, by its name.
std::vector<ScoreSummary> score_values(const models::Scores& scores);

}  // namespace mercer::studies
MERCER_API_END
