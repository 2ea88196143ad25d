// What chains with proposals learn in their warm-up, and only there: the size of a step by dual
// averaging, and the covariance of the posterior from windows of draws that double in length.
//   Source: Nesterov (2009) and Hoffman & Gelman (2014) for the step; Stan's windows for the
//           covariance, which is drawn towards the one before by as many draws as there are
//           parameters and five.
#pragma once

#include "mercer/training/archive.hpp"

namespace mercer::training {

class StepSize {
 public:
  struct Rule {
    double acceptance = 0.25;  // to reach
    /// How strongly a step is drawn to where it began, times `reach`: the smaller, the further it
    /// swings with the chance of single acceptances.
    double shrinkage = 0.5;
    double reach = 1;
  };
  StepSize(double first, const Rule& rule) : rule_(rule) { restart(first); }
  void restart(double step);
  /// After a proposal that is accepted with this probability.
  void learn(double acceptance);
  double now() const { return step_; }      // to try
  double settled() const { return mean_; }  // the average, for after the warm-up
  void visit_state(Archive& archive);

 private:
  Rule rule_;
  double step_ = 1, mean_ = 1, centre_ = 0, error_ = 0;
  Index count_ = 0;
};

class Adaptation {
 public:
  struct Setting {
    Matrix covariance;  // known before any draw
    Index warmup = 0;   // iterations
    double first_step = 1;
    StepSize::Rule rule = {};
    bool restart_step = false;  // at the first step after every window; else where it is
  };
  explicit Adaptation(const Setting& setting);

  /// L with L L' the covariance.
  const Matrix& root() const { return root_; }
  double step(Index iteration) const {
    return iteration <= setting_.warmup ? step_.now() : step_.settled();
  }
  /// After the iteration of this number, from 1; nothing after the warm-up.
  void learn(Index iteration, const Vector& phi, double acceptance);
  void visit_state(Archive& archive);

 private:
  void end_window();

  Setting setting_;
  std::vector<Index> ends_;  // iterations at which windows end; draws count after the first
  Matrix root_, covariance_;
  StepSize step_;
  std::vector<Vector> window_;
};

}  // namespace mercer::training
