// Which hyperparameters: a search over the evidence of any inference method.
//   1. Exact evidences, by factorisations: several starts on few rows, the best of them
//      continued on more (the levels of the choice).
//   2. The trainer of the choice on all rows that are learned from, by solves, where these are more
//      than a factorisation is for. With an approximation (the method of the choice) its own
//      evidence takes the place of that: base points are chosen at the values of the first part and
//      then kept, and L-BFGS (on more and more rows), Adam or AdaGrad climb what they make of all
//      rows.
//   3. Where the rows are a sample of more, a few steps on the evidence of all (full_rows.hpp).
// Every exact evaluation goes through a replay log, and a trainer saves what its next step depends
// on: a killed run resumes to the same bits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mercer/core/progress.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/training/options.hpp"
#include "mercer/training/report.hpp"
#include "mercer/training/sampling/draws.hpp"
#include "mercer/training/sampling/options.hpp"

MERCER_API_BEGIN
namespace mercer::training {

/// What was planned.
struct TrainingChoice {
  std::string trainer;             // a name of the trainers' registry
  Index rows = 0;                  // that are learned from in the end
  std::vector<Index> levels = {};  // rows of the exact searches, in order; empty: none
  /// Rows of the levels by solves, or of an approximation, before `rows`, in order.
  std::vector<Index> solve_levels = {};
  std::optional<Index> budget = {};  // TrainReport::products at most; unset: any number
  /// A level of at most so many rows may have gradients by factorisations, which memory suffices
  /// for: where solves fail, or take longer.
  Index factorable_rows = 0;
  inference::SystemChoice system = {};  // of the solves
  /// An approximation of the inference registry whose evidence is climbed; empty: the exact one.
  std::string approximation = {};
  inference::SparseSetup sparse = {};  // of the approximation
  bool moves_base = false;             // its base points are optimised too, after that
};

/// Values that a step of learning has reached.
struct StepReached {
  const inference::Problem& problem;
  int step = 0;
  double seconds = 0;  // until then, without those of observers
  /// The approximation at work, with its base points; null: none, or it has none yet.
  const inference::Inference* approximation = nullptr;
};
using StepObserver = std::function<void(const StepReached&)>;

/// Rows of which those in memory are a sample: read in passes (inference/sparse/streamed.hpp).
struct FullRows {
  std::function<void(const std::function<void(const inference::Observations&)>&)> pass;
  Index rows = 0;
  int gradients = 3;  // of their evidence, at most
};

struct LearnRequest {
  const TrainOptions& options;
  std::uint64_t seed = 0;
  std::uint64_t identity = 0;  // of the run (data and options); a checkpoint of another is refused
  const ProgressCallback& progress;
  const StepObserver& on_step;
  /// The rows are a sample of these: learning ends on all of them (full_rows.hpp). Only with an
  /// approximation that streams.
  const FullRows* full = nullptr;
  const SampleOptions* sampling = nullptr;  // of a trainer that returns draws; null: its defaults
};

struct Learned {
  inference::Problem problem;
  TrainReport report;
  inference::LikelihoodValue likelihood;  // known when learning ended on all rows, exactly
  inference::WarmStart warm_start;        // of the latent functions of all rows; or empty
  /// What an approximation keeps, its base points among it, when it learned from all rows: for
  /// Inference::load of another on the same rows. Of fewer rows it is empty.
  inference::State approximation = {};
  /// With FullRows: the approximation over all of them, with what its last passes have summed.
  std::shared_ptr<inference::Inference> streamed = {};
  /// From the posterior, where the trainer makes them, and `problem` has their mean. A trainer that
  /// looks for one point has one draw, of weight one.
  Draws draws = {};
};

/// Stopped by the progress callback or a StopScope, it returns the values that were reached until
/// then (report.stop says so); throws Interrupted when there are none yet (Progress::learned). The
/// checkpoint is written in both cases.
Learned train(const inference::Problem& start, const inference::Observations& rows,
              const TrainingChoice& choice, const LearnRequest& request);

class MERCER_HIDDEN Search;

/// A trainer that returns draws from the posterior instead of one point.
struct DrawsInfo {
  Index iterations = 0;                        // of a chain, unless the user says otherwise
  double evaluations = 1;                      // evidences with gradient that one takes, about
  bool preferred = false;                      // `auto` takes it where that many are affordable
  bool values = false;                         // by solves: values of the evidence, no gradients
  Index factored_rows = 0;                     // by solves: so few rows are factored all the same
  std::vector<std::string_view> options = {};  // of SampleOptions, that it alone has
};

struct TrainerInfo {
  std::string_view name;
  std::string_view summary;  // for --help and docs
  bool by_solves;            // goes on where exact evidences end
  bool from_start_values;    // begins at the start values, as in the papers
  bool on_surrogate;         // follows the Vecchia likelihood: starts are judged by that too
  /// Also climbs exact evidences where a factorisation of the rows is affordable.
  bool also_exact = false;
  bool surrogate_only = false;  // no gradient from solves corrects the surrogate
  bool in_levels = false;       // takes gradients on fewer rows before those on all
  /// Gradients by solves that a run usually takes; null: as many as is customary with the
  /// likelihood.
  double (*gradients)(const inference::Problem& problem, const TrainOptions& options) = nullptr;
  bool warns_at_limit = false;  // its limit of steps is far from where it usually ends
  std::string_view words = {};  // in a sentence, "learned by ..."; empty: its name
  /// How gladly `auto` takes it for this problem: the highest that does not take too long; 0:
  /// never.
  int (*preference)(const inference::Problem& problem);
  /// Why the trainer is not for this problem; empty when it is.
  std::string (*refusal)(const inference::Problem& problem);
  /// Goes on from `start` on the rows of the choice; the report of the search says how it ended.
  Vector (*run)(Search& search, const Vector& start);
  std::optional<DrawsInfo> draws = {};  // unset: it looks for one point

  bool takes_gradients() const { return by_solves && !surrogate_only; }
};

Registry<TrainerInfo>& trainers();
/// The first that goes by factorisations alone.
const TrainerInfo& exact_trainer();

/// Neighbours of the Vecchia likelihood that exact gradients correct: they make up for what fewer
/// neighbours miss.
inline constexpr Index kCorrectedNeighbours = 31;
/// Levels of so many rows before the last are factored, where memory suffices: that takes about a
/// second.
inline constexpr Index kFactoredLevel = 4000;
/// Products that a gradient by solves with so many right-hand sides usually takes.
double usual_products(double columns);

/// With more parameters than this the noise of a few probes is too much for Newton's steps by
/// solves, so that `auto` takes Adam, which averages it; and a Hessian is that of few rows.
inline constexpr Index kMostNewtonParameters = 8;

}  // namespace mercer::training
MERCER_API_END
