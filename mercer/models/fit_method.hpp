// What fit asks of a way to infer on one data set, at any values of the hyperparameters: exact
// inference with Gaussian noise, Laplace's approximation with every other likelihood.
#pragma once

#include <memory>

#include "mercer/models/fit.hpp"

namespace mercer::models {

/// Told of the values that a step has reached and the seconds until then, without its own.
using StepObserver = std::function<void(const inference::Problem&, int step, double seconds)>;

struct LearnRequest {
  const TrainOptions& options;
  std::uint64_t seed = 0;
  std::uint64_t identity = 0;  // of the run (data and options); a checkpoint of another is refused
  const ProgressCallback& progress;
  const StepObserver& on_step;
};

struct Learned {
  inference::Problem problem;
  TrainReport report;
  LikelihoodValue likelihood;  // known when learning ended on all rows, exactly
};

struct PosteriorRequest {
  bool watching = false;       // a step of learning is scored: no more digits than a picture shows
  bool with_evidence = false;  // the log evidence as well
};

/// The posterior at fixed hyperparameters and what finding it did.
struct Posterior {
  std::vector<LatentFunction> functions;
  Certificate certificate;
  LikelihoodValue evidence;
  inference::SystemReport solve;
  int newton_steps = 0, halvings = 0;
  double jitter = 0;
  preconditioners::BuildReport preconditioner;
  double build_seconds = 0;
};

class FitMethod {
 public:
  virtual ~FitMethod() = default;
  virtual Learned learn(const LearnRequest& request) = 0;
  /// Throws Interrupted.
  virtual Posterior posterior(const inference::Problem& problem, const PosteriorRequest& request,
                              const ProgressCallback& progress) = 0;
  /// Training points on the scale of the model; they can be taken away when all is done.
  virtual Matrix& points() = 0;

  // Known before any work.
  data::Scaling scaling;
  inference::Problem start{kernels::Kernel::parse("constant", 1), 1.0};
  Plan plan;
  Index merged_rows = 0;
  std::vector<std::string> warnings;
};

/// Scale the data, check what does not go together, and plan.
std::unique_ptr<FitMethod> make_exact_fit(const data::Dataset& data, const FitOptions& options);
std::unique_ptr<FitMethod> make_laplace_fit(const data::Dataset& data, const FitOptions& options);

}  // namespace mercer::models
