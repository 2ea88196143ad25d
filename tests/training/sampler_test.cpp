// Laws of every trainer that returns draws, and what the draws are draws of: quadrature, and each
// other.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/training/sampling/prior.hpp"
#include "mercer/training/training.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/exact_reference.hpp"
#include "tests/training/sampler_world.hpp"

namespace mercer::training {
namespace sampler_test {

using sampler_world::make_world;
using sampler_world::Session;
using sampler_world::World;

struct Case {
  std::string sampler, likelihood;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& trainer : trainers())
    if (trainer.draws)
      for (const char* likelihood : {"gaussian", "bernoulli-logit"})
        if (trainer.refusal(make_world("rbf", likelihood, 2).start).empty())
          out.push_back({std::string(trainer.name), likelihood});
  return out;
}

class SamplerLaw : public ::testing::TestWithParam<Case> {
 protected:
  World world() const { return make_world("rbf", GetParam().likelihood, 20); }
};

TEST_P(SamplerLaw, KeepsAsManyDrawsOfEveryChain) {
  const auto w = world();
  const auto learned = Session()(w, GetParam().sampler);
  const auto& draws = learned.draws;
  ASSERT_EQ(draws.chains.size(), 3u);
  ASSERT_GT(draws.size(), 0);
  EXPECT_EQ(draws.size(), 3 * draws.per_chain());
  EXPECT_TRUE(draws.phi.allFinite());
  EXPECT_EQ(draws.phi.cols(), w.start.log_parameters().size());
  for (Index i = 0; i < draws.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(draws.chain[at], 1 + i / draws.per_chain());
    EXPECT_EQ(draws.iteration[at], draws.iteration.front() + i % draws.per_chain());
    EXPECT_GE(draws.iteration[at], 110);
    EXPECT_LE(draws.iteration[at], 220);
  }
  // A parameter is kept as a value, not as its logarithm.
  EXPECT_TRUE(learned.problem.log_parameters().isApprox(
      Vector(draws.phi.colwise().mean().transpose()), 1e-14));
  EXPECT_EQ(learned.report.stop, StopReason::converged);
  // No two chains begin at the same place, and none stays where it began.
  std::set<double> starts;
  for (const auto& chain : draws.chains) starts.insert(chain.start(0));
  EXPECT_EQ(starts.size(), 3u);
  EXPECT_GT(draws.phi.col(0).maxCoeff(), draws.phi.col(0).minCoeff());
}

TEST_P(SamplerLaw, StoppedAnywhereItGoesOnToTheSameBits) {
  const auto w = world();
  const auto whole = Session()(w, GetParam().sampler);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  for (const int stop_at : {1, 2, 4, 7}) {
    std::filesystem::remove(path);
    try {
      const auto part = Session(path, stop_at)(w, GetParam().sampler);
      EXPECT_EQ(part.report.stop, StopReason::interrupted) << stop_at;
      EXPECT_GT(part.draws.size(), 0);
      EXPECT_LT(part.draws.size(), whole.draws.size());
    } catch (const Interrupted&) {
    }
    const auto rest = Session(path)(w, GetParam().sampler);
    EXPECT_EQ(rest.draws.phi, whole.draws.phi) << stop_at;
    EXPECT_EQ(rest.draws.iteration, whole.draws.iteration) << stop_at;
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(rest.draws.chains[c].start, whole.draws.chains[c].start);
      EXPECT_EQ(rest.draws.chains[c].acceptance, whole.draws.chains[c].acceptance);
      EXPECT_EQ(rest.draws.chains[c].evaluations, whole.draws.chains[c].evaluations);
      EXPECT_EQ(rest.draws.chains[c].ratios, whole.draws.chains[c].ratios);
    }
  }
}

// Cancelled between two tiles, in the middle of an iteration: that one is made again.
TEST_P(SamplerLaw, CancelledInsideAnIterationItGoesOnToTheSameBits) {
  const auto w = world();
  const auto whole = Session()(w, GetParam().sampler);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("checkpoint");
  for (const int questions : {300, 1500}) {
    std::filesystem::remove(path);
    try {
      int asked = 0;
      const StopScope scope([&] { return ++asked > questions; }, 0);
      Session cancelled(path);
      cancelled(w, GetParam().sampler);
    } catch (const Interrupted&) {
    }
    const auto rest = Session(path)(w, GetParam().sampler);
    EXPECT_EQ(rest.draws.phi, whole.draws.phi) << questions;
  }
}

TEST_P(SamplerLaw, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto w = world();
  const int before = num_threads();
  set_num_threads(1);
  const auto one = Session()(w, GetParam().sampler);
  set_num_threads(3);
  const auto three = Session()(w, GetParam().sampler);
  set_num_threads(before);
  EXPECT_EQ(one.draws.phi, three.draws.phi);
}

std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  return test.param.sampler + (test.param.likelihood == "gaussian" ? "_gaussian" : "_classes");
}
INSTANTIATE_TEST_SUITE_P(Registry, SamplerLaw, ::testing::ValuesIn(cases()), case_name);

struct Moments {
  Vector mean, sd, error;  // error: of the mean, from the means of thirds of the chains
};

Moments moments_of(const Draws& draws) {
  const Matrix& phi = draws.phi;
  Moments out;
  out.mean = phi.colwise().mean().transpose();
  out.sd = ((phi.rowwise() - out.mean.transpose()).array().square().colwise().sum() /
            static_cast<double>(phi.rows() - 1))
               .sqrt()
               .transpose();
  const Index parts = 3 * static_cast<Index>(draws.chains.size()), length = phi.rows() / parts;
  Matrix means(parts, phi.cols());
  for (Index i = 0; i < parts; ++i)
    means.row(i) = phi.middleRows(i * length, length).colwise().mean();
  const Vector spread =
      ((means.rowwise() - means.colwise().mean()).array().square().colwise().sum() /
       static_cast<double>(parts - 1))
          .sqrt()
          .transpose();
  out.error = spread / std::sqrt(static_cast<double>(parts));
  return out;
}

Learned long_run(const World& w, const std::string& sampler, Index iterations, Index warmup,
                 std::vector<std::string> prior = {}) {
  Session run;
  run.options = SampleOptions();
  run.options.iterations = iterations;
  run.options.warmup = warmup;
  run.options.prior = std::move(prior);
  return run(w, sampler);
}

// Means within a tenth of a standard deviation or three Monte Carlo errors, standard deviations
// within a tenth: with these seeds, and four times the Monte Carlo error in the worst case.
TEST(Samplers, AgreeWithEachOther) {
  const auto w = make_world("rbf", "gaussian", 25);
  const auto reference = moments_of(long_run(w, "hmc", 2000, 400).draws);
  struct Run {
    const char* sampler;
    Index iterations, warmup;
  };
  for (const Run& run : {Run{"mh", 14000, 4000}, Run{"sgld", 5000, 0}, Run{"da", 3000, 400}}) {
    const auto found = moments_of(long_run(w, run.sampler, run.iterations, run.warmup).draws);
    for (Index i = 0; i < found.mean.size(); ++i) {
      const double error = std::hypot(found.error(i), reference.error(i));
      EXPECT_NEAR(found.mean(i), reference.mean(i), std::max(0.1 * reference.sd(i), 3 * error))
          << run.sampler << i;
      EXPECT_NEAR(found.sd(i) / reference.sd(i), 1, 0.1) << run.sampler << i;
    }
  }
}

// One parameter: the mean and the standard deviation of its logarithm by the trapezoidal rule.
TEST(Samplers, AgreeWithQuadrature) {
  const auto w = make_world("constant", "bernoulli-logit", 25);
  ASSERT_EQ(w.start.log_parameters().size(), 1);
  const std::vector<std::string> given = {"signal_variance=log-normal(0.5,0.7)"};
  const JointPrior prior(w.start.parameter_names(), given);
  double sum = 0, first = 0, second = 0;
  for (double phi = -4; phi <= 5; phi += 0.01) {
    auto problem = w.start;
    problem.set_log_parameters(Vector::Constant(1, phi));
    const double p = std::exp(testing::exact_value(w.rows, problem) + 20 +
                              prior.log_density(Vector::Constant(1, phi)));
    sum += p;
    first += p * phi;
    second += p * phi * phi;
  }
  const double mean = first / sum, sd = std::sqrt(second / sum - mean * mean);
  for (const char* sampler : {"mh", "hmc"}) {
    const bool hamiltonian = std::string(sampler) == "hmc";
    const auto found = moments_of(
        long_run(w, sampler, hamiltonian ? 3000 : 12000, hamiltonian ? 500 : 2000, given).draws);
    // 4.5 Monte Carlo errors of the mean; the standard deviation to four percent.
    EXPECT_NEAR(found.mean(0), mean, 4.5 * found.error(0) + 1e-3) << sampler;
    EXPECT_LT(found.error(0), 0.05 * sd) << sampler;
    EXPECT_NEAR(found.sd(0) / sd, 1, 0.04) << sampler;
  }
}

TEST(Samplers, ReachTheAcceptanceThatTheyAdaptTo) {
  const auto w = make_world("rbf", "gaussian", 30);
  // The acceptance of a chain is known to about 0.02 after so long a warm-up.
  double mean = 0;
  const auto walks = long_run(w, "mh", 14000, 10000).draws.chains;
  for (const auto& chain : walks) {
    EXPECT_NEAR(chain.acceptance, 0.25, 0.08);
    mean += chain.acceptance / static_cast<double>(walks.size());
  }
  EXPECT_GT(mean, 0.2);
  EXPECT_LT(mean, 0.3);
  for (const auto& chain : long_run(w, "hmc", 600, 300).draws.chains) {
    EXPECT_GT(chain.acceptance, 0.65);
    EXPECT_LT(chain.acceptance, 0.95);
  }
}

// With as many neighbours as rows the Vecchia likelihood is the exact one, so that every walk is
// accepted; with fewer neighbours some are not, and the draws are right all the same.
TEST(DelayedAcceptance, IsAsGoodAsItsSurrogate) {
  Session run;
  for (const Index n : {25, 300}) {
    const auto w = make_world("rbf", "gaussian", n);
    run.options.iterations = n == 25 ? 220 : 60;
    run.options.warmup = 20;
    for (const auto& chain : run(w, "da").draws.chains) {
      if (n == 25)
        EXPECT_NEAR(chain.acceptance, 1, 1e-6);
      else
        EXPECT_GT(chain.acceptance, 0.2);
      EXPECT_GT(chain.walk_acceptance, 0.1);
      EXPECT_LT(chain.walk_acceptance, 0.5);
      EXPECT_EQ(chain.evidence_error, 0);  // factored
      EXPECT_LE(chain.evaluations, run.options.iterations.value() + 1);
    }
  }
}

TEST(DelayedAcceptance, NeedsGaussianNoise) {
  const auto w = make_world("rbf", "bernoulli-logit", 20);
  EXPECT_FALSE(trainers().find("da").refusal(w.start).empty());
}

TEST(Samplers, DrawsStayBetweenTheBoundsOfAPrior) {
  const auto w = make_world("rbf", "gaussian", 30);
  for (const auto& trainer : trainers()) {
    if (!trainer.draws) continue;
    Session run;
    run.options.prior = {"lengthscale=log-uniform(0.9,1.1)"};
    const auto draws = run(w, std::string(trainer.name)).draws;
    const Index i = 1;  // signal variance, lengthscale, noise
    EXPECT_GE(draws.phi.col(i).minCoeff(), std::log(0.9)) << trainer.name;
    EXPECT_LE(draws.phi.col(i).maxCoeff(), std::log(1.1)) << trainer.name;
  }
}

TEST(Samplers, RefuseWhatKeepsNoDraw) {
  const auto w = make_world("rbf", "gaussian", 20);
  Session run;
  run.options.iterations = 100;
  run.options.warmup = 100;
  EXPECT_THROW(run(w, "mh"), InvalidArgument);
  run.options.warmup = 10;
  run.options.iterations = 0;
  EXPECT_THROW(run(w, "mh"), InvalidArgument);
  run.options.iterations = 100;
  run.options.prior = {"lengthscale=log-uniform(1e8,1e9)"};
  EXPECT_THROW(run(w, "mh"), InvalidArgument);
  run.options.prior = {"period=gamma(2,2)"};
  EXPECT_THROW(run(w, "mh"), InvalidArgument);
}

TEST(Samplers, ACheckpointOfAnotherRunIsRefused) {
  const auto w = make_world("rbf", "gaussian", 20);
  const testing::TemporaryFolder folder;
  Session first(folder.file("checkpoint"));
  first(w, "mh");
  Session second(folder.file("checkpoint"));
  TrainingChoice choice;
  choice.trainer = "mh";
  choice.rows = 20;
  EXPECT_THROW(train(w.start, w.rows, choice,
                     {second.train_options, 4, 98, second.progress, second.on_step, nullptr,
                      &second.options}),
               InvalidArgument);
}

TEST(Samplers, APointEstimateIsOneDraw) {
  const auto w = make_world("rbf", "gaussian", 20);
  Session run;
  TrainingChoice choice;
  choice.trainer = exact_trainer().name;
  choice.rows = 20;
  choice.levels = {20};
  const auto learned =
      train(w.start, w.rows, choice, {run.train_options, 4, 99, run.progress, run.on_step});
  ASSERT_EQ(learned.draws.size(), 1);
  EXPECT_TRUE(learned.problem.log_parameters().isApprox(
      Vector(learned.draws.phi.row(0).transpose()), 1e-14));
}

}  // namespace sampler_test
}  // namespace mercer::training
