// Gradients of the evidence by solves on the rows that are learned from, each with its line in the
// report: what all trainers by solves ask for.
#pragma once

#include "mercer/training/search.hpp"

namespace mercer::training {

class GradientsBySolves {
 public:
  explicit GradientsBySolves(Search& search);

  const inference::Observations& rows() const { return rows_; }
  const inference::Problem& problem() const { return problem_; }
  inference::Inference& method() { return *method_; }
  double entries() const { return Search::entries(rows_); }

  struct Request {
    double tolerance = 1e-3;
    int error_passes = 0;
  };
  /// Stopped by the user there is no gradient, and stopped() is true from then on.
  inference::Evidence evaluate(ConstVectorView theta, const Request& request);
  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }

  /// Gradients so far, those of the run that is gone on with included.
  int count() const { return search_.report.resumed_gradients + evaluated_; }

 private:
  Search& search_;
  inference::Observations rows_;
  inference::Problem problem_;
  std::unique_ptr<inference::Inference> method_;
  int evaluated_ = 0;
  bool stopped_ = false;
};

/// Tolerances of the solves: on the way, and near the end.
inline constexpr double kLooseTolerance = 1e-2, kTightTolerance = 1e-3;
/// Passes that measure the noise of a gradient.
inline constexpr int kErrorPasses = 2;

}  // namespace mercer::training
