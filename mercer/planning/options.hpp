// What a user may ask for. `auto` (or unset) leaves the choice to the plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"
#include "mercer/krylov/random_stop.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "mercer/training/options.hpp"

MERCER_API_BEGIN
namespace mercer::planning {

using training::TrainOptions;

/// Shared by fit, solve and plan. Hyperparameters are on standardised data (unless the data are
/// not standardised); they are kept with train = none and are start values otherwise.
struct MethodOptions {
  std::string kernel = "matern52";
  std::vector<std::string> isotropic;  // inputs with one scale and one lengthscale
  std::vector<double> lengthscale;     // none, one for all, or one per input
  std::optional<double> signal_variance;
  std::optional<double> noise;  // noise variance
  std::string mean = "zero";
  std::string op = "auto";
  std::string precision = "auto";
  std::string solver = "auto";
  std::string preconditioner = "auto";
  /// Landmarks and seed are the ones below.
  preconditioners::PreconditionerOptions preconditioning;
  std::string landmarks = "auto";
  double tolerance = 1e-6;
  double accuracy = 0.01;
  int max_iterations = 1000;
  /// Of solvers that stop by a draw (krylov/random_stop.hpp).
  std::optional<double> early_tolerance;
  std::string continuation = "auto";
  std::optional<double> beta;
  std::optional<std::uint64_t> memory;  // bytes; unset: 80 % of what is free
  std::uint64_t seed = 0;
};

/// The names that each field takes, from the registries and enums of the rooms below.
std::vector<std::string> mean_names();
std::vector<std::string> operator_names();
std::vector<std::string> precision_names();
std::vector<std::string> solver_names();
std::vector<std::string> preconditioner_names();
std::vector<std::string> continuation_names();
std::vector<std::string> landmark_names();
std::vector<std::string> variance_names();

/// Memory, wherever a run is planned.
inline Field memory_field() {
  return {"memory", "SIZE", "memory to stay inside, as 8G or 500M", "80 % of what is free",
          Affects::plan};
}

template <class Visitor>
void visit_fields(MethodOptions& o, Visitor&& field) {
  field({"kernel", "SPEC",
         "kernel, with one lengthscale per input; rbf:iso for one in all; sums and products: "
         "\"matern52 + linear\"; of some inputs only: \"matern32(x,y) * matern12(t)\""},
        o.kernel, Any{});
  field({"isotropic", "A,B",
         "inputs in one unit, such as coordinates: one common scale and one lengthscale for them, "
         "so that only the distance between points counts",
         "none"},
        o.isotropic, Any{});
  field({"lengthscale", "L", "lengthscale, or one per input: 0.5,2,1", "from the data"},
        o.lengthscale, Positive{});
  field({"signal_variance", "V", "variance of the signal", "from the data"}, o.signal_variance,
        Positive{});
  field({"noise", "V", "variance of the noise", "from the data"}, o.noise, Positive{});
  field({"mean", "KIND", "mean of the process; its coefficients are estimated with the weights"},
        o.mean, OneOf{mean_names()});
  field({"operator", "NAME", "how K v is computed"}, o.op, OneOf{operator_names()});
  field({"precision", "NAME", "arithmetic of the products"}, o.precision, OneOf{precision_names()});
  field({"solver", "NAME", "how systems are solved"}, o.solver, OneOf{solver_names()});
  field({"preconditioner", "NAME", "what makes iterations few"}, o.preconditioner,
        OneOf{preconditioner_names()});
  visit_fields(o.preconditioning, field);
  field({"landmarks", "HOW", "how the landmarks of a preconditioner are chosen"}, o.landmarks,
        OneOf{landmark_names()});
  field({"tolerance", "E", "stop at |y - H x| <= E |y|"}, o.tolerance, BelowOne{});
  field({"accuracy", "A",
         "go on until every mean is certified to this share of the target's standard deviation; 0: "
         "stop at the tolerance"},
        o.accuracy, NonNegative{});
  field({"max_iterations", "I", "iterations at most"}, o.max_iterations, Positive{});
  field({"early_tolerance", "E", "solvers that stop by a draw: draws begin at |y - H x| <= E |y|",
         "0.01"},
        o.early_tolerance, BelowOne{});
  field({"continuation", "RULE",
         "the same: how likely the next step is; residual, the default, goes by the residual, "
         "geometric has "
         "exp(-beta j) for step j, conditional the product of these"},
        o.continuation, OneOf{continuation_names()});
  field({"beta", "B", "the same: of geometric and conditional continuation", "0.1"}, o.beta,
        Positive{});
  field(memory_field(), o.memory, Bytes{});
  field({"seed", "S", "same seed, same bits"}, o.seed, Any{});
}

/// How predictions find the variances of f: docs/methods/variances.md.
struct VarianceOptions {
  std::string method = "auto";
  std::optional<Index> neighbours;  // vecchia: training points to condition on; 100 when unset
  Index draws = 64;                 // samples: draws that a variance is taken over
  Index joint_samples = 0;          // draws of f that are returned as well
  /// Rows whose variance is also solved for when the method is not exact, to measure its error;
  /// 0: not measured. Unset: 8, and up to 64 as long as that is a small share of the run.
  std::optional<Index> check_rows;
  Index rows =
      1000;  // test rows to expect, for estimates: `auto` is exact while that is affordable

  /// Draws that are made when any are.
  Index draws_needed() const {
    return method == "samples" ? std::max(draws, joint_samples) : joint_samples;
  }
  Index neighbours_or_default() const { return neighbours.value_or(100); }
  Index least_checks() const { return check_rows.value_or(8); }
  /// A row of coupled functions is as many right-hand sides as there are functions.
  Index most_checks(Index coupled_functions = 1) const {
    return check_rows.value_or(std::max<Index>(8, 64 / coupled_functions));
  }
};

template <class Visitor>
void visit_fields(VarianceOptions& o, Visitor&& field) {
  field(
      {"variance", "HOW",
       "variance of f by one solve a row (exact), or approximate with the error measured; auto is "
       "exact while that is affordable, else vecchia"},
      o.method, OneOf{variance_names()});
  field({"neighbours", "m", "vecchia: training points that a row is conditioned on", "100"},
        o.neighbours, Positive{});
  field("draws", o.draws, Positive{});
  field({"samples", "n",
         "n joint draws of f as columns sample_1 .. sample_n; the same functions for every file, "
         "whatever piece of it"},
        o.joint_samples, NonNegative{});
  field({"check_rows", "R",
         "random rows that the error of approximate variances is measured on, by solves; 0: not "
         "measured",
         "8, up to 64 within a quarter of the run"},
        o.check_rows, NonNegative{});
  field("rows", o.rows, NonNegative{});
}

/// Checks names and numbers; throws InvalidArgument with the choices there are.
void check(const MethodOptions& options);
void check(const TrainOptions& options);
void check(const VarianceOptions& options);

/// The options of preconditioners that the user gave, landmarks and seed included.
preconditioners::PreconditionerOptions given_preconditioning(const MethodOptions& options);
/// The options that mean something for this preconditioner, or for "auto".
preconditioners::Takes taken_by(const std::string& preconditioner);
/// Those given that also mean something.
preconditioners::PreconditionerOptions preconditioning_for(const std::string& preconditioner,
                                                           const MethodOptions& options);

/// The random stop of this solver with what the user gave; unset for one that is not unbiased.
std::optional<krylov::RandomStopOptions> random_stop_for(const std::string& solver,
                                                         const MethodOptions& options);
/// Throws when the solver asked for is unbiased: `purpose` needs one certified solution.
void refuse_unbiased(const MethodOptions& options, const char* purpose);

/// Whether P changes from step to step, so that only a flexible solver may use it.
bool needs_flexible(const std::string& preconditioner);
/// The Krylov method: the one asked for, else the one that suits the preconditioner.
std::string iterative_solver(const std::string& asked, const std::string& preconditioner);

/// One line per choice, for help pages: "cg          conjugate gradients, ...".
std::string describe_solvers();
std::string describe_operators();
std::string describe_trainers();
std::string describe_inference();
std::string describe_preconditioners();
std::string describe_kernels();

}  // namespace mercer::planning
MERCER_API_END
