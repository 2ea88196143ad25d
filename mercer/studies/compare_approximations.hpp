// Approximations against the exact posterior on the user's own data: what each costs and how far it
// is from the truth, against the number of base points.
//   Every run is an ordinary fit (models/fit.hpp) and predictions of the same test rows; the exact
//   one goes by the solver that its plan takes, so that 50,000 rows are no obstacle.
//   Distances: of the latent means at all test rows; of the standard deviations, and the divergence
//   KL(exact || approximate) a row, at some random test rows, whose exact variances are solved for.
//   Methods with the same evidence (Abilities::evidence_of) learn once: the second one has the
//   hyperparameters, base points and blocks of the first, and its seconds of learning.
//   Cost: the sum of the fits. With `learn=once` hyperparameters are those of the exact fit, so
//   that distances are those of the approximation alone; with `learn=each` every method learns its
//   own, as it would in use, and distances are from the exact fit with its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/models/approximation_check.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/prediction_scores.hpp"

MERCER_API_BEGIN
namespace mercer::studies {

/// "exact" and the approximations of the inference registry.
std::vector<std::string> compared_names();

struct ApproximationsOptions {
  std::vector<std::string> methods;             // in the order of the table
  std::vector<Index> ranks = {100, 300, 1000};  // base points of those that have any
  std::string learn = "each";
  std::optional<double> test_fraction;  // unset: a fifth, unless test rows are given
  Index check_rows = 64;                // test rows with exact variances; 0: none
};

template <class Visitor>
void visit_fields(ApproximationsOptions& o, Visitor&& field) {
  field({"methods", "A,B",
         "compare approximations with the exact posterior in place of solvers: exact, and names of "
         "`method`",
         "solvers and preconditioners are compared"},
        o.methods, OneOf{compared_names()});
  field({"ranks", "M,N", "numbers of base points; a method without any is run once"}, o.ranks,
        Positive{});
  field({"learn", "WHO",
         "hyperparameters: each method learns its own, or all have those of the exact fit"},
        o.learn, OneOf{{"each", "once"}});
  field({"test_fraction", "F", "random share of the rows to predict and not to learn from",
         "0.2, unless `test` names a file"},
        o.test_fraction, BelowOne{});
  field({"check_rows", "R",
         "random test rows that standard deviations and KL are compared on, by exact solves; 0: "
         "none"},
        o.check_rows, NonNegative{});
}

/// Rows to predict, encoded like the data and in raw units.
struct TestRows {
  Matrix inputs;
  Vector target;
  data::NoiseColumns noise = {};
  models::RowName name;  // of a row, for messages
};

/// One method with one number of base points.
struct ApproximationRun {
  std::string method;
  std::optional<Index> rank;  // asked for; unset: the method has no base points
  std::string skipped;        // why it was not run, as a sentence; the rest is then empty
  Index base_points = 0, blocks = 0;
  double fit_seconds = 0, predict_seconds = 0;
  std::string learned_with;  // the method of the same evidence that learned for this one; or empty
  bool given = false;        // the exact fit of an earlier run: it was not fitted here
  double planned_bytes = 0;
  std::optional<double> peak_bytes;  // of the process during the run, data included
  models::LikelihoodValue likelihood;
  std::string evidence_kind;  // exact, bound or approximate
  std::string variance;       // how the variances of the scores were found
  StopReason stop = StopReason::converged;
  models::Scores scores;
  /// Distance of the latent mean from the exact one, over all test rows.
  std::optional<double> mean_rms, mean_max;
  /// The same with standard deviations and KL on the check rows.
  std::optional<models::ApproximationCheck> check;
};

struct ApproximationsResult {
  Index n = 0, d = 0, test_rows = 0;
  Index check_rows = 0;
  std::vector<ApproximationRun> runs;
  std::vector<std::string> warnings;
  bool interrupted = false;
  double seconds = 0;
};

/// Throws InvalidArgument when names or numbers are wrong, or do not go with the options of the
/// fit.
void check(const ApproximationsOptions& options, const models::FitOptions& fit);

/// `fit` has the model, how it is learned, base and blocks; its approximation and rank are set
/// here. When the progress callback says stop, what is done so far is returned and `interrupted` is
/// set. `exact`: the exact model of the same rows, in place of fitting it; or null.
ApproximationsResult compare_approximations(const data::Dataset& train, const TestRows& test,
                                            const models::FitOptions& fit,
                                            const ApproximationsOptions& options,
                                            const ProgressCallback& progress = {},
                                            const models::KernelMachine* exact = nullptr);

}  // namespace mercer::studies
MERCER_API_END
