// A small data set and a run of a sampler on it, for the tests of samplers.
#pragma once

#include <cmath>
#include <string>

#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/training/training.hpp"

namespace mercer::training::sampler_world {

struct World {
  inference::Observations rows;
  inference::Problem start;
};

inline World make_world(const std::string& kernel, const std::string& likelihood, Index n) {
  World w{{Matrix(n, 1), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse(kernel, 1), likelihoods::make(likelihood)}};
  Rng rng(5, "samplers");
  rng.fill_normal(w.rows.x);
  for (Index i = 0; i < n; ++i) {
    const double f = std::sin(2 * w.rows.x(i, 0));
    w.rows.y(i, 0) = w.start.gaussian() ? f + 0.3 * rng.normal()
                                        : (rng.uniform() < 1 / (1 + std::exp(-3 * f)) ? 1 : 0);
  }
  return w;
}

// A run whose progress callback says stop at the call of this number among those of the chains; 0:
// never.
struct Session {
  TrainOptions train_options;
  SampleOptions options;
  ProgressCallback progress;
  StepObserver on_step;
  int calls = 0;

  explicit Session(const std::string& checkpoint = "", int stop_at = 0) {
    train_options.checkpoint = checkpoint;
    train_options.restarts = 0;
    train_options.probes = 4;
    options.chains = 3;
    options.iterations = 220;
    options.warmup = 110;
    options.phase_ratio = 0.5;  // a phase that begins with the first batch of gradients
    progress = [this, stop_at](const Progress& now) {
      if (now.stage != "sample") return Action::proceed;
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
  }
  Learned operator()(const World& w, const std::string& sampler) {
    TrainingChoice choice;
    choice.trainer = sampler;
    choice.rows = w.rows.size();
    choice.system.solver = "cg";
    choice.system.preconditioner = w.start.gaussian() ? "auto" : "none";
    return train(w.start, w.rows, choice,
                 {train_options, 4, 99, progress, on_step, nullptr, &options});
  }
};

}  // namespace mercer::training::sampler_world
