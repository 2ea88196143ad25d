// The part of a plan that is about one system: every way to solve it, with bytes and seconds, and
// the one that is taken. A system is described once, whatever it is for: H = K + D of regression,
// B = I + R'K R of Laplace's approximation with all its latent functions, or the same B at the mode
// of functions that the likelihood couples, asked for covariances.
#pragma once

#include <vector>

#include "mercer/inference/laplace/local_likelihood.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::planning {

enum class SystemForm {
  shifted,  // H = K + D
  curved,   // B = I + R'K R of all latent functions
};

struct System {
  const kernels::Kernel& kernel;
  Index n = 0, d = 0;
  double noise = 1;           // mean of D, or what W^-1 is like
  double prior_variance = 1;  // mean of k(x, x)
  SystemForm form = SystemForm::shifted;
  inference::FunctionCount functions = 1;
  PlanFor purpose = PlanFor::solve;
  /// Right-hand sides that are solved together; curved: for every function.
  Index columns = 1;
  /// Predictions: rows whose variances are solved for, and draws, one right-hand side each.
  double rows = 0, draws = 0;
};

/// The system of a posterior: K + D with Gaussian noise, else B. `noise` as in plan_fit, `columns`
/// besides the first and those of the mean.
System posterior_system(const inference::Problem& problem, double noise,
                        const inference::Observations& rows, Index columns = 0);

struct Candidate {
  PlanRow row;
  inference::SystemChoice choice;
  double nominal_seconds = 0;  // what candidates are ranked by
  Index block = 64;            // test rows whose variances are found together
};

/// What is taken of the ways that the options allow: the quickest that fits, by nominal speeds;
/// small systems are factored. Without any that fits, the smallest; row.fits is false then. Throws
/// InvalidArgument when the options allow none.
Candidate choose(const System& system, const MethodOptions& method, const Plan& plan);

/// What the smallest of these ways needs beside the data.
double least_bytes(const System& system, const MethodOptions& method, const Plan& plan);

/// Adds all ways to the plan and takes one: fills system, variance_block, rows, seconds, peak and
/// reason. Returns the seconds of the choice on a typical machine. Throws DoesNotFit.
double plan_system(const System& system, const MethodOptions& method, Plan& plan);

}  // namespace mercer::planning
