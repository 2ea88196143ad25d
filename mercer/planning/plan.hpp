// What a run would cost, before it starts: every method with its memory and its estimated seconds
// on this machine, which one `auto` takes and why. The formulas stand beside the methods; the plan
// only adds them up, with constants from a quick calibration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/inference/sparse/sparse_setup.hpp"
#include "mercer/inference/speeds.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/planning/approximation_options.hpp"
#include "mercer/planning/options.hpp"

MERCER_API_BEGIN
namespace mercer::planning {

/// Speeds of this machine, measured in a fraction of a second.
inference::Speeds calibrate(const kernels::Kernel& kernel, ConstMatrixView x);

struct PlanRow {
  /// "train", "solve", "predict", or "instead": an approximation that `method` may name.
  std::string stage;
  std::string method;        // "cholesky", "cg tiled mixed, nystrom", ...
  double bytes = 0;          // beyond what is already in memory
  double build_seconds = 0;  // of these, to factor or to build the preconditioner
  double seconds = 0;        // an estimate: iteration counts are guessed from size and noise
  bool fits = false;
  bool allowed = true;  // false: ruled out by an option the user gave
  bool chosen = false;
  std::string note;
};

struct Plan {
  Index n = 0;
  Index d = 0;
  double budget_bytes = 0;  // the option `memory`, or what it is when left out
  double base_bytes = 0;    // program and data, by estimate
  double peak_bytes = 0;    // base + the most that the chosen methods need at once
  double seconds = 0;
  inference::Speeds calibration;
  std::vector<PlanRow> rows;
  std::string reason;  // one sentence: what was chosen and why

  bool trains = false;
  std::string train_method;         // a name of the trainers' registry
  bool train_by_solves = false;     // that trainer goes on where factorisations end
  Index train_rows = 0;             // rows that hyperparameters are learned on
  Index start_rows = 0;             // rows of exact searches before that; 0: none
  std::vector<Index> train_levels;  // rows of the exact searches, in order
  /// Rows of the gradients by solves, or of an approximation, before train_rows.
  std::vector<Index> solve_levels;
  std::optional<Index> train_budget;     // products that gradients by solves may take; unset: any
  Index factorable_rows = 0;             // levels of so many rows may be factored while learning
  inference::SystemChoice train_system;  // of the solves while learning
  inference::SystemChoice system;
  std::string inference;     // a fit: the method of the inference registry that finds the posterior
  bool approximate = false;  // that method is an approximation of the exact posterior
  inference::SparseSetup sparse;    // of it
  bool moves_base = false;          // its base points are optimised with the hyperparameters
  bool streamed = false;            // rows are read in passes; n are all of them
  Index reservoir = 0;              // of these, in memory to learn from
  int passes = 0, most_passes = 0;  // over all rows, that of the survey among them

  // Predictions only.
  std::string variance = "none";  // what `auto` has become: exact, vecchia, samples or none
  bool solves = true;             // false: neither variances nor their check need the system
  /// Test rows whose variances are found together.
  Index variance_block = 64;
};

/// Program and data in memory before a run: an estimate, so that the same command makes the same
/// plan.
double base_bytes(Index n, Index d);
/// The option `memory`; unset, `base` and 80 % of the memory that is free.
double memory_budget(const MethodOptions& method, double base);
/// Below this many rows a factorisation takes about a second: nothing else is worth trying.
inline constexpr Index kAlwaysDirect = 4000;

/// Throws DoesNotFit naming the smallest of these ways, or InvalidArgument when none is allowed.
/// `bytes_after` is what the next stage of the run needs at least, so that the memory that is
/// said to do is enough for all of it.
[[noreturn]] void refuse(const Plan& plan, const std::vector<PlanRow>& rows,
                         const std::string& what, const MethodOptions& method,
                         double bytes_after = 0);

enum class PlanFor { solve, predict };

/// The plan of one system H = K + D, for a solve or for predictions. Throws DoesNotFit with what
/// would fit. `variance` is ignored unless the purpose is predict.
Plan make_plan(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
               const MethodOptions& method, PlanFor purpose, const VarianceOptions& variance = {});

/// The plan of predictions from functions that the likelihood couples
/// (inference/laplace/coupled_query.hpp). `noise` is the mean of W^-1. Throws InvalidArgument for
/// what such functions cannot have.
Plan plan_coupled_query(const inference::Problem& problem, double noise, ConstMatrixView x,
                        Index functions, MethodOptions method, const VarianceOptions& variance);

/// The plan of a fit: the system of its posterior and how hyperparameters are learned. `noise` is
/// the noise variance of H = K + D; with another likelihood, a typical entry of W^-1. With an
/// approximation, whose `points` are on the scale of the rows, the plan is that of its evidence and
/// its posterior; without, every approximation is a row of the plan that is not chosen.
/// With a stream the rows are a sample of it, and the plan is that of passes over all.
Plan plan_fit(const inference::Problem& problem, double noise, const inference::Observations& rows,
              const MethodOptions& method, const TrainOptions& train,
              const ApproximationOptions& approximation = {},
              const std::optional<StreamSetting>& stream = {});

/// The system of the posterior chosen again, with what was learned: at another noise and signal
/// variance another solver may be the quickest. Changes system, inference, the rows of the solve
/// and the reason, or nothing, and returns which. Gaussian noise only: other likelihoods keep their
/// plan.
bool plan_again(const inference::Problem& learned, const inference::Observations& rows,
                const MethodOptions& method, Plan& plan);

}  // namespace mercer::planning
MERCER_API_END
