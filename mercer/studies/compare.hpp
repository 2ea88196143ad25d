// Solvers x preconditioners over a grid of lengthscale and noise, on the user's own data: what each
// needs in iterations, products and seconds, and who wins where.
//   Source: the comparison of Cutajar et al. (2016), figure 1.
//   Every run is an inference::RegularizedSystem, the one that fit and solve use. They share the
//   operator, so that build_seconds are those of the factor or the preconditioner alone.
//   Plain CG is run in every cell; it is what improvements are measured against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/progress.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/names.hpp"
#include "mercer/models/scaled_data.hpp"

MERCER_API_BEGIN
namespace mercer::studies {

struct CompareOptions {
  /// Kernel, signal variance, operator, precision, tolerance, limits, memory and seed; its
  /// lengthscale, noise, solver and preconditioner are not used. Preconditioning options go to
  /// those that take them.
  models::MethodOptions method;
  std::vector<double> lengthscales = {1e-3, 1e-2, 0.1, 1, 10, 100};
  /// Noise variances s2. Rows with noise of their own have s2 / count + known variance.
  std::vector<double> noises = {1e-6, 1e-4, 1e-2};
  /// "auto" is cg, or fcg for a preconditioner that changes from step to step; "cholesky" is the
  /// direct method, without preconditioners.
  std::vector<std::string> solvers = {"auto"};
  /// "auto" is what fit and solve do by themselves. Empty: all that suit kernel and data.
  std::vector<std::string> preconditioners;
  /// Stop at |r| <= rms_tolerance sqrt(N) instead of |r| <= tolerance |y|; 1e-5 is the rule of
  /// Cutajar et al.
  std::optional<double> rms_tolerance;
  std::optional<Index> rows;  // compare on so many random rows; unset: all
  /// Of one solve: a longer one is stopped and said to be. Unset: the time of 300 products with K,
  /// by estimate, at least 1 and at most 60.
  std::optional<double> cell_seconds;
  bool standardize = true;
};

template <class Visitor>
void visit_fields(CompareOptions& o, Visitor&& field) {
  field({"lengthscales", "L",
         "lengthscales of the grid: values, or FROM:TO:COUNT evenly in logarithm"},
        o.lengthscales, PositiveGrid{});
  field({"noises", "V", "noise variances of the grid, in the same way"}, o.noises, PositiveGrid{});
  field({"solvers", "A,B",
         "solvers; auto is cg, or fcg where P changes from step to step; cholesky is the direct "
         "method"},
        o.solvers, OneOf{planning::solver_names()});
  field({"preconditioners", "A,B", "preconditioners; auto is what fit does by itself",
         "all that suit kernel and data, and auto"},
        o.preconditioners, OneOf{planning::preconditioner_names()});
  field({"rows", "M", "compare on M random rows", "all"}, o.rows, Positive{});
  field({"cell_seconds", "S", "stop a solve after this time; skip longer builds",
         "that of 300 products with K, from 1 to 60"},
        o.cell_seconds, Positive{});
  field(
      {"rms_tolerance", "E",
       "stop at |r| <= E sqrt(N) instead of `tolerance` (1e-5 is the rule of Cutajar et al. 2016)",
       "not used"},
      o.rms_tolerance, Positive{});
  field("standardize", o.standardize, Any{});
  visit_fields(o.method, field);
}

/// Throws InvalidArgument when names or numbers are wrong.
void check(const CompareOptions& options);

/// One solver with one preconditioner in one cell.
struct CompareRun {
  double lengthscale = 0;
  double noise = 0;
  std::string solver;
  std::string preconditioner;
  /// Why it was not run, as a sentence; the rest is then empty.
  std::string skipped;
  StopReason stop = StopReason::converged;
  bool timed_out = false;  // stopped by the time budget
  int iterations = 0;
  int inner_iterations = 0;
  std::int64_t matvecs = 0;
  double build_seconds = 0;
  double solve_seconds = 0;
  double relative_residual = 0;  // true, in double
  std::string built;             // what `auto` became; else the preconditioner
  Index rank = 0;
  Index neighbours = 0;
  std::string notes;  // of the preconditioner's build
  /// log10(iterations / iterations of plain CG); inner products count as iterations. Negative is
  /// better. Unset when either did not converge.
  std::optional<double> improvement;

  bool converged() const { return skipped.empty() && stop == StopReason::converged; }
  double seconds() const { return build_seconds + solve_seconds; }
  /// "cg", "cholesky", "nystrom", "fgmres + regularized": the solver is left out when it is the
  /// usual one.
  std::string label() const;
};

struct CompareWinner {
  double lengthscale = 0;
  double noise = 0;
  std::string by_seconds, by_iterations;  // labels; empty when nothing converged
};

struct CompareResult {
  Index n = 0;
  Index d = 0;
  std::string op, precision;
  double cell_seconds = 0;                   // the limit of one solve
  double seconds = 0;                        // of the whole comparison
  std::vector<double> lengthscales, noises;  // as run
  std::vector<std::string> labels;           // in the order of the options, plain CG first
  std::vector<CompareRun> runs;
  std::vector<CompareWinner> winners;
  bool interrupted = false;
  std::string note;
};

/// Runs the grid. When the progress callback says stop, what is done so far is returned and
/// `interrupted` is set.
CompareResult compare(const data::Dataset& data, const CompareOptions& options,
                      const ProgressCallback& progress = {});

}  // namespace mercer::studies
MERCER_API_END
