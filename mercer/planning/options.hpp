// What a user may ask for. `auto` (or unset) leaves the choice to the plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "mercer/training/options.hpp"

namespace mercer::planning {

using training::TrainOptions;

/// Shared by fit, solve and plan. Hyperparameters are on standardised data (unless the data are
/// not standardised); they are kept with train = none and are start values otherwise.
struct MethodOptions {
  std::string kernel = "matern52";
  std::vector<double> lengthscale;  // none, one for all, or one per input
  std::optional<double> signal_variance;
  std::optional<double> noise;  // noise variance
  std::string mean = "zero";
  std::string op = "auto";              // auto, or a name of the operators' registry
  std::string precision = "auto";       // auto | double | mixed | single
  std::string solver = "auto";          // auto | cholesky | krylov's registry
  std::string preconditioner = "auto";  // auto | none | the preconditioners' registry
  /// Landmarks and seed are the ones below.
  preconditioners::PreconditionerOptions preconditioning;
  std::string landmarks = "auto";  // auto | uniform | kmeans | leverage
  double tolerance = 1e-6;
  int max_iterations = 1000;
  std::optional<std::uint64_t> memory;  // bytes; unset: 80 % of what is free
  std::uint64_t seed = 0;
};

/// The numeric fields and their rules. Names are those of the command line.
template <class Visitor>
void visit_fields(MethodOptions& o, Visitor&& field) {
  field("--signal-variance", o.signal_variance, Positive{});
  field("--noise", o.noise, Positive{});
  field("--rank", o.preconditioning.rank, Positive{});
  field("--neighbours", o.preconditioning.neighbours, Positive{});
  field("--blocks", o.preconditioning.blocks, Positive{});
  field("--delta", o.preconditioning.delta, Positive{});
  field("--inner-tolerance", o.preconditioning.inner_tolerance, Positive{});
  field("--drop", o.preconditioning.drop, NonNegative{});
  field("--tolerance", o.tolerance, BelowOne{});
  field("--max-iterations", o.max_iterations, Positive{});
}

/// How predictions find the variances of f: docs/methods/variances.md.
struct VarianceOptions {
  std::string method = "auto";      // auto | exact | vecchia | samples | none
  std::optional<Index> neighbours;  // vecchia: training points to condition on; 100 when unset
  Index draws = 64;                 // samples: draws that a variance is taken over
  Index joint_samples = 0;          // draws of f that are returned as well
  /// Rows whose variance is also solved for exactly when the method is not exact, to measure its
  /// error; 64 when unset, 0: not measured.
  std::optional<Index> check_rows;
  Index rows =
      1000;  // test rows to expect, for estimates: `auto` is exact while that is affordable

  /// Draws that are made when any are.
  Index draws_needed() const {
    return method == "samples" ? std::max(draws, joint_samples) : joint_samples;
  }
  Index neighbours_or_default() const { return neighbours.value_or(100); }
  Index check_rows_or_default() const { return check_rows.value_or(64); }
};

template <class Visitor>
void visit_fields(VarianceOptions& o, Visitor&& field) {
  field("--neighbours", o.neighbours, Positive{});
  field("draws", o.draws, Positive{});
  field("--samples", o.joint_samples, NonNegative{});
  field("--check-rows", o.check_rows, NonNegative{});
  field("rows", o.rows, NonNegative{});
}

/// Checks names and numbers; throws InvalidArgument with the choices there are.
void check(const MethodOptions& options);
void check(const TrainOptions& options);
void check(const VarianceOptions& options);

/// The names that --variance, --solver and --preconditioner take.
std::vector<std::string> variance_names();
std::vector<std::string> solver_names();
/// auto, none and the trainers.
std::vector<std::string> train_names();
std::vector<std::string> preconditioner_names();
std::vector<std::string> operator_names();
/// The options of preconditioners that the user gave, landmarks and seed included.
preconditioners::PreconditionerOptions given_preconditioning(const MethodOptions& options);
/// The options that mean something for this preconditioner, or for "auto".
preconditioners::Takes taken_by(const std::string& preconditioner);
/// Those given that also mean something.
preconditioners::PreconditionerOptions preconditioning_for(const std::string& preconditioner,
                                                           const MethodOptions& options);

/// Whether P changes from step to step, so that only a flexible solver may use it.
bool needs_flexible(const std::string& preconditioner);
/// The Krylov method: the one asked for or, with "auto" and "cholesky", the one that suits.
std::string iterative_solver(const std::string& asked, const std::string& preconditioner);

/// One line per choice, for --help: "cg          conjugate gradients, ...".
std::string describe_solvers();
std::string describe_operators();
std::string describe_preconditioners();
std::string describe_kernels();

}  // namespace mercer::planning
