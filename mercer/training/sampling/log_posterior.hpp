// The log density that chains follow: log p(y | theta) + log p(phi), phi = log theta, with the
// Jacobian in the prior. Its evidence comes from any method of inference that has gradients.
#pragma once

#include <cmath>
#include <memory>
#include <optional>

#include "mercer/inference/inference.hpp"
#include "mercer/training/sampling/prior.hpp"
#include "mercer/training/search.hpp"

namespace mercer::training {

class LogPosterior {
 public:
  /// The prior must outlive this. Outside the box the density is zero.
  LogPosterior(inference::Problem problem, const JointPrior& prior, const optim::Box& box,
               std::unique_ptr<inference::Inference> method)
      : problem_(std::move(problem)), prior_(prior), box_(box), method_(std::move(method)) {}

  struct Value {
    double log_density =
        -HUGE_VAL;       // estimates by solves have none: zero where there is a gradient
    Vector gradient;     // empty where there is none
    int iterations = 0;  // of solves
    bool solved = true;  // these ended as they should, and not at a limit
    std::optional<inference::RandomStops> random_stops;
    double error = 0;  // standard error of an evidence that is estimated
    bool possible() const { return log_density > -HUGE_VAL; }
  };
  /// Throws Interrupted.
  Value at(ConstVectorView phi, const inference::Ask& ask);
  bool inside(ConstVectorView phi) const;

  inference::Inference& method() { return *method_; }
  const inference::Problem& problem() const { return problem_; }
  const optim::Box& box() const { return box_; }

 private:
  inference::Problem problem_;
  const JointPrior& prior_;
  const optim::Box& box_;
  std::unique_ptr<inference::Inference> method_;
};

/// The bounds of the search and of priors that have bounds. Throws InvalidArgument where nothing is
/// left between them.
optim::Box sampling_box(const optim::Box& search, const JointPrior& prior);

/// The mode of the posterior of some rows, and what its Hessian says of the posterior of all.
struct PosteriorMode {
  Vector phi;
  Index rows = 0;
  /// Minus the inverse of the Hessian there, eigenvalues between 1e-6 and 1: of its rows, and
  /// scaled to all of them.
  Matrix covariance_of_rows, covariance;
};

/// Climbs from the start values and some random ones on at most 500 rows (1,000 of more than
/// 20,000), by exact evidences. Throws Interrupted.
PosteriorMode find_posterior_mode(Search& search, const JointPrior& prior, const optim::Box& box);

/// A lower-triangular root of a covariance: L L'.
Matrix covariance_root(const Matrix& covariance);

}  // namespace mercer::training
