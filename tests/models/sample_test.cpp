// Draws of hyperparameters as a model: what is mixed, written, read and certified.
#include "mercer/models/sampling/sample.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/data/array_file.hpp"
#include "mercer/models/log_normal.hpp"
#include "mercer/models/prediction_scores.hpp"
#include "mercer/models/sampling/mixture.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace sample_test {

data::Dataset wave(Index n, bool counts = false, double shift = 0) {
  Matrix x(n, 1);
  Vector y(n);
  Rng rng(8, "sample data");
  rng.fill_normal(x);
  for (Index i = 0; i < n; ++i) {
    const double f = std::sin(2 * x(i, 0));
    y(i) =
        counts ? std::floor(3 * std::exp(f) * rng.uniform() + 0.5) : shift + f + 0.2 * rng.normal();
  }
  return data::make_dataset(std::move(x), std::move(y));
}

SamplingOptions few_draws(Index draws = 5) {
  SamplingOptions options;
  options.fit.method.kernel = "rbf";
  options.fit.train.restarts = 0;
  options.sample.chains = 2;
  options.sample.iterations = 60;
  options.draws = draws;
  return options;
}

Matrix new_rows() { return Vector::LinSpaced(9, -2.5, 2.5); }

// The predictions of every draw alone, by a model of that draw.
std::vector<Predictions> of_draws(const KernelMachine& model) {
  std::vector<Predictions> out;
  for (Index i = 0; i < model.num_draws(); ++i)
    out.push_back(Predictor(model.draw(i), {}).predict(new_rows()));
  return out;
}

TEST(Sample, MixesMeansAndVariances) {
  const auto result = sample(wave(40), few_draws());
  ASSERT_EQ(result.model.num_draws(), 5);
  const auto parts = of_draws(result.model);
  const auto mixed = Predictor(result.model, {}).predict(new_rows());
  ASSERT_EQ(mixed.parts.size(), 5u);
  for (Index i = 0; i < mixed.rows(); ++i) {
    double mean = 0, square = 0, noisy = 0, bound = 0;
    for (const auto& p : parts) {
      mean += p.mean(i) / 5;
      square += (p.mean(i) * p.mean(i) + std::pow(p.latent_sd(i, 0), 2)) / 5;
      noisy += (p.mean(i) * p.mean(i) + std::pow(p.sd_obs(i), 2)) / 5;
      bound += p.error_bound(i, 0) / 5;
    }
    EXPECT_NEAR(mixed.mean(i), mean, 1e-12);
    // Differences of squares of order one: rounding of 1e-15, over a standard deviation of 0.05.
    EXPECT_NEAR(mixed.latent_sd(i, 0), std::sqrt(square - mean * mean), 1e-12);
    EXPECT_NEAR(mixed.sd_obs(i), std::sqrt(noisy - mean * mean), 1e-12);
    EXPECT_NEAR(mixed.error_bound(i, 0), bound, 1e-15 + 1e-12 * bound);
  }
  double largest = 0;
  for (Index i = 0; i < 5; ++i)
    largest = std::max(largest, result.model.draw(i).certificate.mean_error_bound);
  EXPECT_EQ(result.model.certificate_of_all().mean_error_bound, largest);
}

TEST(Sample, QuantilesAreThoseOfTheMixture) {
  const auto result = sample(wave(40), few_draws());
  PredictOptions options;
  options.quantiles = {0.01, 0.3, 0.95};
  const auto mixed = Predictor(result.model, options).predict(new_rows());
  for (Index i = 0; i < mixed.rows(); ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double below = 0;
      for (const auto& p : mixed.parts)
        below += standard_normal_cdf((mixed.quantiles(i, static_cast<Index>(j)) - p.mean(i)) /
                                     p.sd_obs(i)) /
                 5;
      EXPECT_NEAR(below, options.quantiles[j], 1e-9);
    }
}

TEST(Sample, CountsHaveWholeQuantiles) {
  auto options = few_draws(3);
  options.fit.likelihood = "poisson";
  const auto result = sample(wave(40, true), options);
  const Predictor predictor(result.model, {});
  const auto mixed = predictor.predict(new_rows());
  for (Index i = 0; i < mixed.rows(); ++i) {
    const auto below = [&](double y) {
      double sum = 0;
      for (Index k = 0; k < 3; ++k) {
        const auto& p = mixed.parts[static_cast<std::size_t>(k)];
        sum += result.model.draw(k).problem.likelihood->predictive_cdf(
                   y, p.latent_mean(i, 0), std::pow(p.latent_sd(i, 0), 2)) /
               3;
      }
      return sum;
    };
    EXPECT_EQ(mixed.q95(i), std::floor(mixed.q95(i)));
    EXPECT_GE(below(mixed.q95(i)), 0.95);
    if (mixed.q95(i) > 0) {
      EXPECT_LT(below(mixed.q95(i) - 1), 0.95);
    }
  }
  // The density of a mixture is the mean of the densities.
  const Vector y = Vector::Constant(9, 2);
  double of_parts = 0;
  for (Index k = 0; k < 3; ++k) {
    const Predictor one(result.model.draw(k), {});
    of_parts += std::exp(one.log_density(one.predict(new_rows()), y)(4)) / 3;
  }
  EXPECT_NEAR(std::exp(predictor.log_density(mixed, y)(4)), of_parts, 1e-10);
}

TEST(Sample, ALogarithmIsMixedAsLogNormals) {
  auto data = wave(40, false, 3);
  data.schema.log_target = true;
  const auto result = sample(data, few_draws(4));
  const auto mixed = Predictor(result.model, {}).predict(new_rows());
  for (Index i = 0; i < mixed.rows(); ++i) {
    double mean = 0, below = 0;
    for (const auto& p : mixed.parts) {
      mean += p.mean(i) / 4;
      below +=
          standard_normal_cdf(
              log_normal_of_ratio(p.latent_mean(i, 0), p.sd_obs(i) / p.mean(i)).z(mixed.q05(i))) /
          4;
    }
    EXPECT_NEAR(mixed.mean(i), mean, 1e-12 * mean);
    EXPECT_NEAR(below, 0.05, 1e-9);
  }
}

TEST(Sample, ClassesHaveTheMeanOfTheProbabilities) {
  auto data = wave(40);
  for (auto& y : data.target) y = y > 0 ? 1 : 0;
  auto options = few_draws(3);
  options.fit.likelihood = "bernoulli-logit";
  options.fit.classes = find_classes(data);
  const auto result = sample(data, options);
  const auto mixed = Predictor(result.model, {}).predict(new_rows());
  const auto parts = of_draws(result.model);
  Matrix mean = Matrix::Zero(9, 2);
  for (const auto& p : parts) mean += p.probabilities / 3;
  EXPECT_LT((mixed.probabilities - mean).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(Sample, AFileHoldsEveryDraw) {
  for (const char* mean : {"zero", "linear"}) {
    auto options = few_draws(4);
    options.fit.method.mean = mean;
    const auto result = sample(wave(40), options);
    const testing::TemporaryFolder folder;
    result.model.save(folder.file("m.mcr"));
    EXPECT_EQ(data::read_array_file(folder.file("m.mcr"), "model").version, 7u);
    const auto read = KernelMachine::load(folder.file("m.mcr"));
    ASSERT_EQ(read.num_draws(), 4);
    PredictOptions with_samples;
    with_samples.variance.joint_samples = 6;
    const auto before = Predictor(result.model, with_samples).predict(new_rows());
    const auto after = Predictor(read, with_samples).predict(new_rows());
    EXPECT_EQ(before.mean, after.mean);
    EXPECT_EQ(before.sd_obs, after.sd_obs);
    EXPECT_EQ(before.q05, after.q05);
    EXPECT_EQ(before.samples, after.samples);
    EXPECT_EQ(before.error_bound, after.error_bound);
    ASSERT_EQ(after.samples.cols(), 6);
    // Samples go round the draws, and those of two draws are not the same function.
    EXPECT_NE(after.samples.col(0), after.samples.col(1));
    EXPECT_EQ(after.samples.col(4), after.parts[0].samples.col(1));
  }
}

TEST(Sample, AFileWithADrawMissingIsRefused) {
  const auto result = sample(wave(30), few_draws(3));
  const testing::TemporaryFolder folder;
  result.model.save(folder.file("m.mcr"));
  auto file = data::read_array_file(folder.file("m.mcr"), "model");
  auto damaged = file;
  damaged.arrays.erase("draw2_weights");
  EXPECT_THROW(KernelMachine::from_file(damaged, "m.mcr"), ModelFileError);
  damaged = file;
  damaged.arrays["draw1_residual"](0) = -1;
  EXPECT_THROW(KernelMachine::from_file(damaged, "m.mcr"), ModelFileError);
}

TEST(Sample, WeightsByIterationsAgreeWithThoseByFactors) {
  auto options = few_draws(4);
  const auto direct = sample(wave(60), options);
  options.fit.method.solver = "cg";
  options.fit.method.tolerance = 1e-10;
  const auto iterative = sample(wave(60), options);
  ASSERT_EQ(direct.draws.phi, iterative.draws.phi);
  const auto a = Predictor(direct.model, {}).predict(new_rows());
  const auto b = Predictor(iterative.model, {}).predict(new_rows());
  // Both certified: the means are within the bounds of each other.
  for (Index i = 0; i < a.rows(); ++i)
    EXPECT_LE(std::abs(a.mean(i) - b.mean(i)), a.error_bound(i, 0) + b.error_bound(i, 0));
}

TEST(Sample, RefusesWhatHasNoPosterior) {
  auto options = few_draws();
  options.fit.mean_only = true;
  EXPECT_THROW(sample(wave(30), options), InvalidArgument);
  options = few_draws();
  options.fit.approximation.method = "fitc";
  EXPECT_THROW(sample(wave(30), options), InvalidArgument);
  options = few_draws();
  options.sample.prior = {"lengthscale=flat"};
  EXPECT_THROW(sample(wave(30), options), InvalidArgument);
}

// CRPS = integral of (F(x) - 1{x >= y})^2, by the trapezoidal rule on both sides of y.
TEST(Mixture, CrpsIsTheIntegral) {
  const Vector mean{{0.3, -1.0, 0.8}}, sd{{0.5, 1.2, 0.3}};
  const auto cdf = [&](double x) {
    double sum = 0;
    for (Index k = 0; k < 3; ++k) sum += standard_normal_cdf((x - mean(k)) / sd(k)) / 3;
    return sum;
  };
  for (const double y : {-2.0, 0.1, 1.7}) {
    double integral = 0;
    constexpr int count = 20000;
    for (const bool above : {false, true}) {
      const double from = above ? y : -12, to = above ? 12 : y, h = (to - from) / count;
      for (int i = 0; i <= count; ++i) {
        const double x = from + i * h, d = cdf(x) - (above ? 1 : 0);
        integral += (i == 0 || i == count ? 0.5 : 1.0) * d * d * h;
      }
    }
    EXPECT_NEAR(normal_mixture_crps(y, mean, sd), integral, 1e-6);
  }
}

TEST(Mixture, ScoresAreThoseOfTheMixture) {
  const auto data = wave(40);
  const auto result = sample(data, few_draws(3));
  const Predictor predictor(result.model, {});
  const auto mixed = predictor.predict(new_rows());
  const Vector y = Vector::LinSpaced(9, -1, 1);
  PredictionScores scores(predictor);
  scores.add(mixed, y, [](Index row) { return std::to_string(row); });
  double nll = 0, crps = 0;
  for (Index i = 0; i < 9; ++i) {
    double density = 0;
    Vector mean(3), sd(3);
    for (Index k = 0; k < 3; ++k) {
      const auto& p = mixed.parts[static_cast<std::size_t>(k)];
      mean(k) = p.mean(i);
      sd(k) = p.sd_obs(i);
      const double z = (y(i) - mean(k)) / sd(k);
      density += std::exp(-0.5 * z * z) / (sd(k) * std::sqrt(2 * M_PI)) / 3;
    }
    nll -= std::log(density) / 9;
    crps += normal_mixture_crps(y(i), mean, sd) / 9;
  }
  EXPECT_NEAR(scores.scores().numbers->nll, nll, 1e-10);
  EXPECT_NEAR(scores.scores().numbers->crps, crps, 1e-12);
}

}  // namespace sample_test
}  // namespace mercer::models
