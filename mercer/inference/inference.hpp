// A way to infer: the evidence and the posterior of one data set at fixed hyperparameters. Training
// asks for evidences and their gradients, fit for the posterior; neither knows how they are found.
// A method is one file that declares an entry and one line of registry.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mercer/core/progress.hpp"
#include "mercer/core/registry.hpp"
#include "mercer/inference/exact/evidence_gradient.hpp"
#include "mercer/inference/laplace/laplace.hpp"
#include "mercer/inference/laplace/local_likelihood.hpp"
#include "mercer/inference/posterior.hpp"
#include "mercer/inference/solvers.hpp"
#include "mercer/inference/sparse/sparse_setup.hpp"
#include "mercer/inference/speeds.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// Named arrays, for checkpoints.
using State = std::map<std::string, Matrix>;

struct Ask {
  bool gradient = true;
  double tolerance = 1e-3;   // of iterative solves
  int error_passes = 0;      // measurements of the noise of an estimated gradient
  std::uint64_t probes = 0;  // which of the sets of probes that a seed has: another number, others
  /// The solves of a gradient stop at random, and are right on average (unbiased_solve.hpp); the
  /// tolerance is then that of their means. For methods without Inference::unbiased_refusal().
  std::optional<krylov::RandomStopOptions> random_stop = {};
};

struct PosteriorRequest {
  double tolerance = 1e-6;     // of the solves, or of the mode
  bool with_evidence = false;  // the log evidence as well
  bool with_gradient = false;  // and, where H is factored, its gradient: two more factorisations
  /// Gaussian noise: solves go on below the tolerance until the error bound of the mean is this
  /// share of the target's standard deviation; 0: they do not.
  double accuracy = 0;
};

/// Where the latent functions were: the search for the next mode begins there. Empty for methods
/// that do not search.
struct WarmStart {
  Matrix a;     // N x C
  Matrix f;     // N x C; may be that of other hyperparameters; or empty
  Matrix beta;  // coefficients of the mean; or empty
};

class Inference {
 public:
  virtual ~Inference() = default;

  /// Throws NotPositiveDefinite where there is no evidence, Interrupted in the middle of a
  /// factorisation. Stopped by the observer there is no gradient.
  virtual Evidence evaluate(const Problem& at, const Ask& ask, const Observer& observer = {}) = 0;

  /// Throws Interrupted; InvalidArgument when the method has none (Abilities::posterior).
  virtual Posterior posterior(const Problem& at, const PosteriorRequest& request,
                              const ProgressCallback& progress = {});

  /// Builds anew what small moves leave as it is (neighbours of a sparse factor).
  virtual void renew(const Problem& /*at*/) {}

  /// Approximations with base points (Abilities::base): those in use, m x d, empty before they are
  /// chosen. They are chosen at the first evaluation or posterior, or by renew(), and then kept, so
  /// that the evidence is a smooth function of the hyperparameters.
  virtual Matrix base_points() const { return {}; }
  /// From now on these; renew() leaves them. Throws InvalidArgument when the method takes none.
  virtual void use_base(Matrix points);
  /// evaluate() and the gradient of the evidence in the base points, m x d. Throws InvalidArgument
  /// unless the method has Abilities::optimizes_base.
  virtual Evidence evaluate_with_base(const Problem& at, const Ask& ask, Matrix& base_gradient);

  virtual WarmStart warm_start() const { return {}; }
  virtual void start_from(const WarmStart& /*start*/) {}

  /// What was learned about the solves that holds for more rows as well, for their load().
  virtual State for_more_rows() const { return {}; }

  /// What the next evaluation depends on besides its arguments; load() goes on to the same bits.
  /// `like` has the kernel and the mean of the problems to come, with any values.
  virtual State save() const { return {}; }
  virtual void load(const State& /*state*/, const Problem& /*like*/) {}

  /// Why gradients cannot be asked for with a random stop; empty when they can.
  virtual std::string unbiased_refusal() const;
};

/// What a method works on. The rows must outlive it.
struct InferenceSetup {
  const Observations& rows;
  SystemChoice system = {};  // of its solves
  Index probes = 8;          // of estimated gradients
  Probes probe_kind = Probes::control;
  std::uint64_t seed = 0;
  std::optional<Index> neighbours = {};  // of sparse factors; unset: by size
  SparseSetup sparse = {};               // base points and blocks
};

/// Size and speed that costs are stated for.
struct CostSetting {
  Index n = 0, d = 0;
  FunctionCount functions = 1;  // latent ones
  Index columns = 1;            // right-hand sides besides probes
  Index parameters = 0;         // of the kernel
  Index probes = 8;
  SystemChoice system = {};
  Speeds speed = {};
  std::optional<Index> neighbours = {};  // of sparse factors; unset: by size
  std::optional<Index> rank = {};        // base points; unset: min(N, 1000)
  std::optional<Index> blocks = {};      // unset: by size
};

/// Cost of one evaluation with its gradient.
struct EvaluationCost {
  double bytes = 0;
  double seconds = 0;
};

/// How evidences are found: by dense factorisations, by solves, or of a cheap surrogate of the
/// exact one that knows its curvature; `none` has no evidence.
enum class EvidenceBy { factorisation, solves, surrogate, none };

struct Abilities {
  EvidenceBy evidence = EvidenceBy::none;
  bool posterior = true;
  /// An approximation of the exact posterior, chosen by name only: posterior_method and
  /// evidence_method pass it over. Its posterior is Posterior::sparse.
  bool approximate = false;
  EvidenceKind kind = EvidenceKind::exact;
  /// Another approximation whose evidence this one has with the same base points and blocks: what
  /// is learned with it holds here, and it can load what that one saved. Empty: none.
  std::string_view evidence_of = {};
  bool base = false;            // takes base points (SparseSetup::base, points)
  bool degenerate = false;      // has no prior variance besides that of its base points
  bool blocks = false;          // works on blocks of rows (SparseSetup::blocks)
  bool optimizes_base = false;  // has evaluate_with_base
  bool streams = false;         // learns from rows that are not in memory (sparse/streamed.hpp)
};

struct InferenceInfo {
  std::string_view name;
  std::string_view summary;  // for --help and docs
  Abilities abilities;
  /// Why the method does not go with this problem and these rows; empty when it does.
  std::string (*refusal)(const Problem& problem, const Observations& rows);
  /// Whether its solves go by this name of solvers.hpp.
  bool (*takes_solver)(std::string_view solver);
  EvaluationCost (*cost)(const CostSetting& setting);
  std::unique_ptr<Inference> (*make)(const InferenceSetup& setup);
  /// A solver that comes with this method, beside the factorisation and those of krylov; or none.
  std::optional<SystemSolver> solver = {};
};

Registry<InferenceInfo>& methods();
/// Throws InvalidArgument with the reason when the method refuses.
std::unique_ptr<Inference> make(std::string_view name, const Problem& problem,
                                const InferenceSetup& setup);
/// The method that is no approximation, has a posterior, takes the solver and does not refuse; of
/// several the one that was registered last. Throws InvalidArgument with the reasons when there is
/// none.
std::string_view posterior_method(const Problem& problem, const Observations& rows,
                                  std::string_view solver);
/// The first method, no approximation, that finds the evidence of such a problem in this way.
/// Throws InvalidArgument when there is none.
std::string_view evidence_method(const Problem& problem, EvidenceBy by);
/// An array of a state; throws ModelFileError when it is missing or has not so many entries.
const Matrix& saved_array(const State& state, const std::string& name,
                          std::optional<Index> size = {});

/// Refusals and rules that several methods share.
std::string needs_gaussian_noise(const Problem& problem, const Observations& rows);
std::string needs_laplace(const Problem& problem, const Observations& rows);
bool is_cholesky(std::string_view solver);
bool is_iterative(std::string_view solver);

}  // namespace mercer::inference
MERCER_API_END
