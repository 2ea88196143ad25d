// What predictions of all likelihoods have in common: systems that are built once for a stream,
// draws of the latent functions, and memory for all of them or for one at a time.
#include "mercer/models/predictor.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::models {
namespace predictor_test {

constexpr int kClasses = 3;

data::Dataset sectors(Index n) {
  Matrix x(n, 2);
  Rng rng(9, "sectors");
  rng.fill_normal(x);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    const double angle = (std::atan2(x(i, 1), x(i, 0)) + M_PI) / (2 * M_PI);
    y(i) = std::min(kClasses - 1, static_cast<int>(angle * kClasses));
  }
  return data::make_dataset(std::move(x), std::move(y));
}

Matrix places(Index m) {
  Matrix x(m, 2);
  Rng(10, "places").fill_normal(x);
  return x;
}

FitOptions fixed(const std::string& likelihood) {
  FitOptions options;
  options.likelihood = likelihood;
  options.method.kernel = "matern52:iso";
  options.method.lengthscale = {1.0};
  options.method.signal_variance = 2.0;
  options.train.train = "none";
  return options;
}

KernelMachine class_model(Index n = 90) {
  const auto data = sectors(n);
  auto options = fixed("bernoulli-logit");
  options.classes = find_classes(data);
  return fit(data, options).model;
}

PredictOptions by(const char* variance) {
  PredictOptions options;
  options.variance.method = variance;
  return options;
}

TEST(PredictorOfClasses, AStreamInPiecesIsTheWhole) {
  const auto model = class_model();
  const Matrix at = places(150);
  for (const char* variance : {"exact", "vecchia"}) {
    auto options = by(variance);
    if (std::string(variance) == "vecchia") options.variance.neighbours = 10;
    const Predictor predictor(model, options);
    const auto whole = predictor.predict(at);
    auto sample = predictor.row_sample();
    for (Index first = 0; first < at.rows(); first += 50) {
      const auto piece = predictor.predict(at.middleRows(first, 50), sample);
      EXPECT_FALSE(piece.sd_error);
      // Blocks of other widths are summed in another order.
      EXPECT_LE(
          (whole.probabilities.middleRows(first, 50) - piece.probabilities).cwiseAbs().maxCoeff(),
          1e-12)
          << variance;
    }
    const auto error = predictor.sd_error(sample);
    EXPECT_EQ(error.has_value(), std::string(variance) == "vecchia");
    if (!error) continue;
    // Measured once for the stream, on as many rows as were asked for.
    EXPECT_EQ(error->rows, 64);
    EXPECT_NEAR(error->largest, whole.sd_error->largest, 1e-9);
  }
}

// The error that is reported is the largest over the functions: each is compared with exact ones.
TEST(PredictorOfClasses, TheMeasuredErrorIsThatOfTheWorstFunction) {
  const auto model = class_model();
  const Matrix at = places(40);
  auto options = by("vecchia");
  options.variance.neighbours = 5;
  const auto rough = Predictor(model, options).predict(at);
  const auto exact = Predictor(model, by("exact")).predict(at);
  ASSERT_TRUE(rough.sd_error);
  EXPECT_NEAR(rough.sd_error->largest, (rough.latent_sd - exact.latent_sd).cwiseAbs().maxCoeff(),
              1e-9);
}

TEST(PredictorOfClasses, OneSystemAtATimePredictsTheSameBits) {
  const auto model = class_model(300);
  const Matrix at = places(30);
  const Predictor all(model, by("exact"));
  auto options = by("exact");
  const auto& plan = all.plan();
  // Room for the system of one function, not for those of three.
  options.memory =
      static_cast<std::uint64_t>(plan.base_bytes + 1.5 * (plan.peak_bytes - plan.base_bytes));
  options.solver = "cholesky";
  const Predictor one(model, options);
  EXPECT_EQ(all.predict(at).probabilities, one.predict(at).probabilities);
  EXPECT_EQ(one.predict(at).latent_sd, one.predict(at).latent_sd);
}

// Of every likelihood: the draws have the mean and the variances that are predicted, and those of
// different functions have nothing to do with each other.
TEST(PredictorDraws, HaveTheMomentsOfThePosterior) {
  constexpr Index draws = 1000;
  const Matrix at = places(8);
  for (const std::string likelihood : {"bernoulli-logit", "poisson", "student-t"}) {
    auto data = sectors(90);
    auto options = fixed(likelihood);
    if (likelihood == "bernoulli-logit") options.classes = find_classes(data);
    const auto model = fit(data, options).model;
    auto how = by("exact");
    how.variance.joint_samples = draws;
    const auto p = Predictor(model, how).predict(at);
    ASSERT_EQ(p.samples.cols(), draws * model.num_functions());
    for (Index c = 0; c < model.num_functions(); ++c) {
      const Matrix f = p.samples.middleCols(c * draws, draws);
      const Vector mean = f.rowwise().mean();
      const Vector variance = (f.colwise() - mean).rowwise().squaredNorm() / draws;
      for (Index i = 0; i < at.rows(); ++i) {
        const double sd = p.latent_sd(i, c);
        // Five standard errors, false alarm 6e-7 each; the 4,096 random features know the prior to
        // 2 %, which is far more of a small posterior variance.
        EXPECT_NEAR(mean(i), p.latent_mean(i, c), 5 * sd / std::sqrt(1.0 * draws)) << likelihood;
        EXPECT_NEAR(variance(i) / (sd * sd), 1, 0.5) << likelihood;
      }
    }
    if (model.num_functions() < 2) continue;
    const Vector a = p.samples.row(0).head(draws).array() - p.latent_mean(0, 0);
    const Vector b = p.samples.row(0).segment(draws, draws).array() - p.latent_mean(0, 1);
    EXPECT_LT(std::abs(a.dot(b) / (a.norm() * b.norm())), 5 / std::sqrt(1.0 * draws));
  }
}

TEST(PredictorOfNumbers, HasNoSpreadWithoutVariances) {
  const auto data = sectors(60);
  for (const std::string likelihood : {"gaussian", "poisson", "student-t"}) {
    const auto model = fit(data, fixed(likelihood)).model;
    const auto p = Predictor(model, by("none")).predict(data.inputs);
    EXPECT_EQ(p.latent_sd.size(), 0) << likelihood;
    EXPECT_EQ(p.sd_obs.size(), 0) << likelihood;
    EXPECT_EQ(p.q05.size(), 0) << likelihood;
    EXPECT_TRUE(p.mean.allFinite()) << likelihood;
    const auto q = Predictor(model, by("exact")).predict(data.inputs);
    EXPECT_TRUE((q.q025.array() <= q.q05.array()).all()) << likelihood;
    EXPECT_TRUE((q.q95.array() <= q.q975.array()).all()) << likelihood;
    EXPECT_GT(q.sd_obs.minCoeff(), 0) << likelihood;
  }
}

}  // namespace predictor_test
}  // namespace mercer::models
