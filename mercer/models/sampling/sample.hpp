// From data to draws of the hyperparameters, and a model that mixes over some of them: a Gaussian
// process whose hyperparameters are as uncertain as the data leave them.
//
//   const auto data = data::read_dataset("concrete.csv", {});
//   auto found = models::sample(data, {.fit = {.method = {.kernel = "rbf"}}});
//   found.model.save("concrete.mcr");
#pragma once

#include "mercer/models/fit.hpp"
#include "mercer/training/sampling/draws.hpp"
#include "mercer/training/sampling/options.hpp"
#include "mercer/training/sampling/prior.hpp"
#include "mercer/training/sampling/summary.hpp"

MERCER_API_BEGIN
namespace mercer::models {

struct SamplingOptions {
  FitOptions fit;  // its training is that of the sampler
  training::SampleOptions sample;
  Index draws = 16;  // that the model mixes over, at most
};

template <class Visitor>
void visit_fields(SamplingOptions& o, Visitor&& field) {
  visit_fields(o.sample, field);
  visit_fields(o.fit, field);
  field({"draws", "n",
         "draws that the model mixes over, evenly thinned; predictions take as many times longer"},
        o.draws, Positive{});
}

struct SampleResult {
  KernelMachine model;  // of the thinned draws
  Plan plan;
  TrainReport training;
  training::Draws draws;
  std::vector<std::string> names;       // of the parameters
  std::vector<training::Prior> priors;  // the same order
  std::vector<training::ParameterSummary> parameters;
  Index merged_rows = 0;
  std::vector<std::string> warnings;
  StopReason solve_stop = StopReason::converged;  // of the weights of every draw, the first that
                                                  // did not converge
  int solve_iterations = 0;                       // of all of them
  double sample_seconds = 0, solve_seconds = 0, seconds = 0;

  bool interrupted() const { return training.stop == StopReason::interrupted; }
};

/// Plans, draws, and solves for the weights of the thinned draws, each beginning from the one
/// before. Told to stop by the progress callback, it keeps the draws so far; before there are any
/// it throws Interrupted. A checkpoint holds the chains, and the same call goes on from it.
SampleResult sample(const data::Dataset& data, const SamplingOptions& options,
                    const ProgressCallback& progress = {});

}  // namespace mercer::models
MERCER_API_END
