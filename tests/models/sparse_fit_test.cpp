// Approximations through fit, model file and predictions.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/data/array_file.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/approximation_check.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace sparse_fit_test {

data::Dataset small_data(Index n, std::uint64_t seed = 3) {
  Matrix x(n, 2);
  Vector y(n);
  Rng rng(seed, "sparse fits");
  rng.fill_normal(x);
  for (Index i = 0; i < n; ++i) y(i) = 5 + 3 * std::sin(2 * x(i, 0)) + x(i, 1) + 0.3 * rng.normal();
  return data::make_dataset(x, y);
}

std::vector<std::string> names() { return planning::approximation_names(); }

FitOptions options_of(const std::string& name, Index rank = 12) {
  FitOptions options;
  options.method.kernel = "matern52";
  options.method.lengthscale = {0.9};
  options.method.signal_variance = 1.1;
  options.method.noise = 0.04;
  options.method.mean = "linear";
  options.train.train = "none";
  options.approximation.method = name;
  const auto& can = inference::methods().find(name).abilities;
  if (can.base) options.method.preconditioning.rank = rank;
  if (can.blocks) options.method.preconditioning.blocks = 3;
  return options;
}

class SparseFit : public ::testing::TestWithParam<std::string> {};

TEST_P(SparseFit, ItsFileGivesTheSamePredictions) {
  const auto data = small_data(70), fresh = small_data(9, 4);
  const auto fit = models::fit(data, options_of(GetParam()));
  ASSERT_NE(fit.model.sparse, nullptr);
  EXPECT_EQ(fit.model.method_name(), GetParam());
  EXPECT_EQ(fit.model.num_rows(), 70);
  EXPECT_FALSE(fit.model.certificate.rigorous);
  EXPECT_TRUE(fit.likelihood.known);
  EXPECT_EQ(fit.likelihood.method, GetParam());
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  fit.model.save(path);
  EXPECT_EQ(data::read_array_file(path, "model").version, 6u);
  const auto loaded = KernelMachine::load(path);
  EXPECT_EQ(loaded.num_rows(), 70);
  const auto before = Predictor(fit.model, {}).predict(fresh.inputs);
  const auto after = Predictor(loaded, {}).predict(fresh.inputs);
  // The file has the logarithms of hyperparameters: values that were given come back to rounding.
  EXPECT_LT((before.mean - after.mean).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT((before.sd_obs - after.sd_obs).cwiseAbs().maxCoeff(), 1e-13);
  EXPECT_FALSE(after.sd_error_bound.has_value());
  EXPECT_EQ(after.error_estimate.size(), 0);
  EXPECT_TRUE((after.latent_sd.array() > 0).all());
  if (GetParam() == "rra") return;  // good at its base points only: it divides by the noise
  // Twelve points explain most of a smooth function: better than nothing, by far.
  const double spread = std::sqrt((fresh.target.array() - data.target.mean()).square().mean());
  EXPECT_LT(std::sqrt((after.mean - fresh.target).squaredNorm() / 9), spread);
}

TEST_P(SparseFit, WithoutVariancesTheMeansAreTheSame) {
  const auto fit = models::fit(small_data(50), options_of(GetParam()));
  const auto fresh = small_data(7, 4);
  PredictOptions none;
  none.variance.method = "none";
  const auto means = Predictor(fit.model, none).predict(fresh.inputs);
  EXPECT_EQ(means.latent_sd.size(), 0);
  EXPECT_EQ(means.mean, Predictor(fit.model, {}).predict(fresh.inputs).mean);
  PredictOptions other;
  other.variance.method = "vecchia";
  EXPECT_THROW(Predictor(fit.model, other), InvalidArgument);
  PredictOptions solver;
  solver.solver = "cg";
  EXPECT_THROW(Predictor(fit.model, solver), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Registry, SparseFit, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// What is reported is what two predictors differ by, on all rows.
TEST(SparseCheck, MeasuresTheDistanceFromTheExactPosterior) {
  const auto data = small_data(60);
  auto options = options_of("dtc", 8);
  options.approximation.check_rows = 60;
  const auto fit = models::fit(data, options);
  auto exact_options = options;
  exact_options.approximation = {};
  exact_options.method.preconditioning = {};
  const auto exact = models::fit(data, exact_options);
  const auto a = Predictor(fit.model, {}).predict(data.inputs);
  const auto e = Predictor(exact.model, {}).predict(data.inputs);
  const auto& check = fit.model.check;
  EXPECT_EQ(check.rows, 60);
  EXPECT_GT(check.mean_rms, 1e-3);
  EXPECT_NEAR(check.mean_rms, std::sqrt((a.mean - e.mean).squaredNorm() / 60), 1e-9);
  EXPECT_NEAR(check.mean_max, (a.mean - e.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_NEAR(check.sd_max, (a.latent_sd - e.latent_sd).cwiseAbs().maxCoeff(), 1e-9);
  double kl = 0;
  for (Index i = 0; i < 60; ++i) {
    const double v0 = e.sd_obs(i) * e.sd_obs(i), v1 = a.sd_obs(i) * a.sd_obs(i);
    const double apart = a.mean(i) - e.mean(i);
    kl += 0.5 * (v0 / v1 - 1 - std::log(v0 / v1) + apart * apart / v1) / 60;
  }
  EXPECT_NEAR(check.kl, kl, 1e-9);
  const testing::TemporaryFolder folder;
  fit.model.save(folder.file("m.mcr"));
  EXPECT_EQ(KernelMachine::load(folder.file("m.mcr")).check.kl, check.kl);
}

// With every row as a base point the variational posterior is the exact one.
TEST(SparseCheck, AllRowsAsBasePointsAreNoApproximation) {
  const auto data = small_data(40);
  auto options = options_of("vfe", 40);
  options.approximation.base = "random";
  options.approximation.check_rows = 40;
  const auto fit = models::fit(data, options);
  EXPECT_LT(fit.model.check.mean_max, 1e-7);
  EXPECT_LT(fit.model.check.sd_max, 1e-6);
}

TEST(SparseFits, LearnsOnItsOwnEvidence) {
  const auto data = small_data(150);
  auto options = options_of("vfe", 20);
  options.train.train = "auto";
  options.train.restarts = 0;
  const auto fit = models::fit(data, options);
  EXPECT_TRUE(fit.plan.approximate);
  EXPECT_GT(fit.training.approximate_evaluations, 1);
  auto given = options_of("vfe", 20);
  EXPECT_GT(fit.likelihood.value, models::fit(data, given).likelihood.value);
  // A bound: below the exact evidence at the same values.
  auto exact = options;
  exact.approximation = {};
  exact.method.preconditioning = {};
  EXPECT_LT(fit.likelihood.value, refit(fit.model, data, exact).likelihood.value + 1e-8);
}

TEST(SparseFits, BasePointsOfTheUserAreInUnitsOfTheData) {
  auto data = small_data(60);
  data.inputs.col(0) *= 100;  // metres
  data = data::make_dataset(data.inputs, data.target);
  auto options = options_of("srm", 12);
  const auto chosen = models::fit(data, options);
  Matrix raw = chosen.model.sparse->base;
  chosen.model.scaling.unscale_inputs(raw);
  options.method.preconditioning.rank.reset();
  options.approximation.points = raw;
  const auto given = models::fit(data, options);
  const auto fresh = small_data(5, 8);
  Matrix at = fresh.inputs;
  at.col(0) *= 100;
  const Vector a = Predictor(chosen.model, {}).predict(at).mean;
  const Vector b = Predictor(given.model, {}).predict(at).mean;
  // The same points but for the rounding of the scaling, there and back.
  EXPECT_LT((a - b).cwiseAbs().maxCoeff(), 1e-8);
}

// The mean of y needs the variance; a bound is nowhere.
TEST(SparseFits, LogarithmsHaveMeansOfTheTarget) {
  auto data = small_data(60);
  data.target = (0.2 * data.target.array()).exp();
  data.schema.log_target = true;
  auto options = options_of("fitc", 20);
  const auto fit = models::fit(data, options);
  const auto fresh = small_data(6, 4);
  const auto p = Predictor(fit.model, {}).predict(fresh.inputs);
  for (Index i = 0; i < 6; ++i) EXPECT_GT(p.mean(i), std::exp(p.latent_mean(i, 0)));
  EXPECT_EQ(p.mean_error_bound.size(), 0);
  EXPECT_EQ(p.error_bound.size(), 0);
}

TEST(SparseFits, Refusals) {
  const auto data = small_data(30);
  const auto refuses = [&](const FitOptions& options, const char* saying) {
    try {
      models::fit(data, options);
      ADD_FAILURE() << saying;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(saying), std::string::npos) << error.what();
    }
  };
  refuses(options_of("vfe", 31), "`rank` is 31, more than the 30 distinct rows");
  auto blocks = options_of("pitc");
  blocks.method.preconditioning.blocks = 31;
  refuses(blocks, "`blocks` is 31");
  auto no_blocks = options_of("vfe");
  no_blocks.method.preconditioning.blocks = 2;
  refuses(no_blocks, "has no blocks");
  auto no_base = options_of("rbcm");
  no_base.method.preconditioning.rank = 5;
  refuses(no_base, "has no base points");
  auto fixed = options_of("pitc");
  fixed.approximation.optimize_base = true;
  refuses(fixed, "gradient in its base points");
  auto moving = options_of("vfe");
  moving.approximation.optimize_base = true;
  refuses(moving, "`train=none`");
  auto newton = options_of("vfe");
  newton.train.train = "vecchia";
  refuses(newton, "`train=vecchia`");
  auto one = options_of("vfe");
  one.method.preconditioning.rank.reset();
  one.approximation.points = data.inputs.topRows(1);
  refuses(one, "one row");
  auto twice = one;
  twice.approximation.points = Matrix(2, 2);
  twice.approximation.points << 1, 2, 1, 2;
  refuses(twice, "the same point");
  auto unknown = options_of("vfe");
  unknown.approximation.base = "magic";
  refuses(unknown, "magic");
  FitOptions plain;
  plain.approximation.check_rows = 5;
  refuses(plain, "`check_rows` belongs to an approximation");
  auto columns = one;
  columns.approximation.points = Matrix::Random(4, 3);
  EXPECT_THROW(models::fit(data, columns), DimensionMismatch);
}

TEST(SparseFits, CountsNeedAnApproximationThatTakesThem) {
  auto data = small_data(30);
  data.target = data.target.array().abs().floor();
  auto options = options_of("vfe");
  options.method.noise.reset();
  options.method.mean = "zero";
  options.likelihood = "poisson";
  EXPECT_THROW(models::fit(data, options), InvalidArgument);
}

}  // namespace sparse_fit_test
}  // namespace mercer::models
