// Gradients of the evidence by solves on the rows that are learned from, each with its line in the
// report: what all trainers by solves ask for. With an approximation they are those of its
// evidence, which are exact.
#pragma once

#include <algorithm>

#include "mercer/training/search.hpp"

namespace mercer::training {

class GradientsBySolves {
 public:
  /// On all rows that are learned from, or on the first so many of the random order.
  explicit GradientsBySolves(Search& search);
  GradientsBySolves(Search& search, Index rows);

  const inference::Observations& rows() const { return rows_; }
  const inference::Problem& problem() const { return problem_; }
  inference::Inference& method() { return *method_; }
  double entries() const { return Search::entries(rows_); }

  struct Request {
    double tolerance = 1e-3;
    int error_passes = 0;
    /// Where the solves fail, the gradient comes from a factorisation if memory suffices for one.
    /// Otherwise there is none, and failed() is true.
    bool must_succeed = false;
  };
  /// Stopped by the user there is no gradient, and stopped() is true from then on. Where the budget
  /// of the choice is spent in the middle of it there is none either, and over_budget() is true.
  inference::Evidence evaluate(ConstVectorView theta, const Request& request);
  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }
  bool over_budget() const { return over_budget_; }
  bool failed() const { return failed_; }

  /// Memory suffices for a factorisation of these rows.
  bool factorable() const;
  /// No more rows than these, whatever memory there is now: a resumed run goes on as it began.
  void limit_factorisations(Index rows) { most_factored_ = std::min(most_factored_, rows); }
  /// From now on gradients come from factorisations: without noise, and whatever the condition.
  void factor();
  bool factored() const { return factored_; }
  /// What one of those takes, in products of all rows on a typical machine.
  double factored_products() const;
  /// A product of these rows is so much of one of all rows.
  double share() const;
  /// Right-hand sides of a solve.
  Index columns() const;

 private:
  std::unique_ptr<inference::Inference> direct() const;
  inference::Evidence by_factorisation();
  inference::Evidence usable(inference::Evidence estimate, const Request& request, double products);
  void record(const inference::Evidence& estimate, double tolerance);

  Search& search_;
  inference::Observations rows_;
  inference::Problem problem_;
  std::unique_ptr<inference::Inference> method_;
  Index most_factored_ = 0;
  bool stopped_ = false, over_budget_ = false, failed_ = false, factored_ = false;
};

/// Tolerances of the solves: on the way, and near the end.
inline constexpr double kLooseTolerance = 1e-2, kTightTolerance = 1e-3;
/// Seconds of a pass with derivatives over those of a float32 product with one column, about.
inline constexpr double kPassProducts = 15;
/// Iterations of a solve that are expected before any is known.
inline constexpr double kUsualIterations = 10;
/// Passes that measure the noise of a gradient.
inline constexpr int kErrorPasses = 2;

}  // namespace mercer::training
