// Langevin dynamics: when the phase begins, how its solves stop, and what the step does.
#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/training/sampling/summary.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/sampler_world.hpp"

namespace mercer::training {
namespace sgld_test {

using sampler_world::make_world;
using sampler_world::Session;
using sampler_world::World;

TEST(Sgld, RecordsWhenTheStepWasFrozen) {
  const auto w = make_world("rbf", "gaussian", 30);
  Session run;
  run.options.iterations = 1500;
  run.options.warmup = 0;
  run.options.first_step = 0.4;
  run.options.phase_ratio = 0.02;
  const auto draws = run(w, "sgld").draws;
  for (const auto& chain : draws.chains) {
    ASSERT_GT(chain.first_kept, 0);
    EXPECT_EQ(chain.first_kept % 100, 0);  // after a batch of gradients
    const auto batch = static_cast<std::size_t>(chain.first_kept / 100 - 1);
    EXPECT_LT(chain.ratios[batch], 0.02);
    for (std::size_t b = 0; b < batch; ++b) EXPECT_GE(chain.ratios[b], 0.02);
    EXPECT_LT(chain.step, 0.4);
    EXPECT_GT(chain.step, 0.01);
  }
}

// Without a preconditioner solves take long enough for draws to matter.
Learned plain_langevin(const World& w, Session& run) {
  TrainingChoice choice;
  choice.trainer = "sgld";
  choice.rows = w.rows.size();
  choice.system.solver = "cg";
  return train(w.start, w.rows, choice,
               {run.train_options, 4, 99, run.progress, run.on_step, nullptr, &run.options});
}

TEST(Sgld, ReportsSolvesThatStopAtRandom) {
  const auto w = make_world("rbf", "gaussian", 40);
  Session run;
  const auto draws = plain_langevin(w, run).draws;
  for (const auto& chain : draws.chains) {
    const auto& solves = chain.solves;
    EXPECT_EQ(solves.gradients, chain.evaluations - chain.failed);
    EXPECT_EQ(solves.unbiased, solves.gradients);
    EXPECT_GE(solves.iterations, solves.gradients);
    // The solve for y and those of four probes.
    EXPECT_GT(solves.random_stops, 0);
    EXPECT_LE(solves.random_stops, 5 * solves.gradients);
    EXPECT_GT(solves.continued, 0);
    EXPECT_LT(solves.continued, solves.random_stops);
    EXPECT_GE(solves.extra_iterations, solves.random_stops + solves.continued);
    EXPECT_GT(solves.variance, 0);
  }
  run.options.unbiased = "no";
  const auto ordinary = plain_langevin(w, run).draws;
  EXPECT_NE(ordinary.phi, draws.phi);
  for (const auto& chain : ordinary.chains) {
    EXPECT_EQ(chain.solves.gradients, chain.evaluations - chain.failed);
    EXPECT_EQ(chain.solves.unbiased, 0);
    EXPECT_EQ(chain.solves.random_stops, 0);
  }
}

TEST(Sgld, SolvesThatStopAtRandomGoOnToTheSameBits) {
  const auto w = make_world("rbf", "gaussian", 40);
  Session unbroken;
  const int before = num_threads();
  set_num_threads(1);
  const auto whole = plain_langevin(w, unbroken);
  set_num_threads(3);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  try {
    Session part(path, 3);
    plain_langevin(w, part);
  } catch (const Interrupted&) {
  }
  Session again(path);
  const auto rest = plain_langevin(w, again);
  set_num_threads(before);
  EXPECT_EQ(rest.draws.phi, whole.draws.phi);
  for (std::size_t c = 0; c < 3; ++c) {
    const auto &a = rest.draws.chains[c].solves, &b = whole.draws.chains[c].solves;
    EXPECT_EQ(a.iterations, b.iterations);
    EXPECT_EQ(a.random_stops, b.random_stops);
    EXPECT_EQ(a.continued, b.continued);
    EXPECT_EQ(a.extra_iterations, b.extra_iterations);
    EXPECT_EQ(a.variance, b.variance);
  }
}

// A posterior that is the prior nearly, so normal, with M its covariance: a step e makes its
// variance 1 / (1 - e/4) times as large, and half of it 1 / (1 - e/8). For e = 0.4 the difference
// is 0.0526 of the first.
TEST(Sgld, HalfStepsShowTheBiasOfTheStep) {
  const auto w = make_world("rbf", "gaussian", 20);
  Session run;
  run.options.iterations = 3000;
  run.options.warmup = 0;
  run.options.chains = 4;
  run.options.first_step = run.options.last_step = 0.4;
  run.options.half_steps = 2800;
  run.options.prior = {
      "lengthscale=log-normal(0,0.05),signal_variance=log-normal(0,0.05),"
      "noise_variance=log-normal(-2,0.05)"};
  const auto draws = run(w, "sgld").draws;
  const auto all = step_bias(draws);
  ASSERT_EQ(all.size(), 3u);
  for (const auto& bias : all) {
    ASSERT_TRUE(bias.mean_error && bias.sd_error);
    // About three standard errors of 0.008 (paths differ by 0.15, in 1,700 independent draws).
    EXPECT_NEAR(bias.sd, 0.0526, 0.025);
    EXPECT_NEAR(bias.mean, 0, 0.03);
    EXPECT_LT(*bias.sd_error, 0.02);
    EXPECT_LT(*bias.mean_error, 0.02);
  }
  for (const auto& chain : draws.chains) {
    EXPECT_EQ(chain.half_steps.iterations, 2100);  // a quarter is for the paths to part
    EXPECT_EQ(chain.evaluations, 3000 + 2 * 2800);
    EXPECT_EQ(chain.least_scale, 1);
  }
}

// More of them than the phase has iterations are as many as it has.
TEST(Sgld, HalfStepsEndWithThePhase) {
  const auto w = make_world("rbf", "gaussian", 20);
  Session run;  // 220 iterations, a phase from 100 on
  run.options.half_steps = 100000;
  for (const auto& chain : run(w, "sgld").draws.chains) {
    EXPECT_EQ(chain.half_steps.iterations, 90);
    EXPECT_EQ(chain.evaluations, 220 + 2 * 120);
  }
}

// Solves that meet their limit are not told to be right on average.
TEST(Sgld, CountsOnlyGradientsWhoseSolvesStopAtRandom) {
  const auto w = make_world("rbf", "gaussian", 40);
  Session run;
  TrainingChoice choice;
  choice.trainer = "sgld";
  choice.rows = w.rows.size();
  choice.system.solver = "cg";
  choice.system.max_iterations = 1;
  run.options.phase_ratio = 0.99;
  const auto learned =
      train(w.start, w.rows, choice,
            {run.train_options, 4, 99, run.progress, run.on_step, nullptr, &run.options});
  for (const auto& chain : learned.draws.chains)
    EXPECT_LT(chain.solves.unbiased, chain.solves.gradients);
}

TEST(Sgld, TheBiasOfTheStepIsTwiceTheDifference) {
  Draws draws;
  draws.phi = Matrix(4, 1);
  draws.phi << -1, 1, 3, 5;  // variance 20/3
  for (const double shift : {0.0, 0.2}) {
    ChainReport chain;
    chain.half_steps = {2, Vector::Constant(1, 4 + 2 * shift), Vector::Constant(1, 20),
                        Vector::Constant(1, 4), Vector::Constant(1, 16)};
    draws.chains.push_back(chain);
  }
  const auto bias = step_bias(draws);
  ASSERT_EQ(bias.size(), 1u);
  // Means 2 and 2.2 of the chains, 2 and 2 of half steps; mean squares 10 and 8.
  const double variance = 20.0 / 3;
  EXPECT_NEAR(bias[0].mean, 2 * 0.1 / std::sqrt(variance), 1e-14);
  EXPECT_NEAR(*bias[0].mean_error, 2 * 0.1 / std::sqrt(variance), 1e-14);
  EXPECT_NEAR(bias[0].sd, ((10 - 2.1 * 2.1) - (8 - 2.0 * 2.0)) / variance, 1e-14);
  draws.chains.pop_back();
  EXPECT_FALSE(step_bias(draws)[0].sd_error);
  draws.chains.clear();
  EXPECT_TRUE(step_bias(draws).empty());
}

// With such a step Euler's rule swings ever further, unless M is scaled; the scale is kept in the
// phase.
TEST(Sgld, ScalesStepsWhereGradientsAreLong) {
  const auto w = make_world("rbf", "gaussian", 40);
  Session run;
  run.options.iterations = 1500;
  run.options.warmup = 0;
  run.options.half_steps = 0;
  run.options.phase_ratio = 0.9;
  run.options.first_step = run.options.last_step = 30;
  const auto draws = run(w, "sgld").draws;
  EXPECT_TRUE(draws.phi.allFinite());
  for (const auto& chain : draws.chains) {
    EXPECT_LT(chain.least_scale, 1);
    EXPECT_GT(chain.least_scale, 0);
  }
}

TEST(Sgld, RefusesUnbiasedSolvesWhereThereAreNone) {
  const auto w = make_world("rbf", "bernoulli-logit", 20);
  Session run;
  run.options.unbiased = "yes";
  EXPECT_THROW(run(w, "sgld"), InvalidArgument);
  run.options.unbiased = "auto";
  for (const auto& chain : run(w, "sgld").draws.chains) EXPECT_EQ(chain.solves.unbiased, 0);
}

TEST(Sgld, SaysWhenThePhaseIsNotReached) {
  const auto w = make_world("rbf", "gaussian", 30);
  Session run;
  run.options.iterations = 250;
  run.options.warmup = 0;
  run.options.phase_ratio = 1e-9;
  EXPECT_THROW(run(w, "sgld"), ToleranceNotReached);
}

}  // namespace sgld_test
}  // namespace mercer::training
