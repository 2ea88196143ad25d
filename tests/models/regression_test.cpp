#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/array_file.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/scaled_data.hpp"
#include "mercer/studies/simulate.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace regression_test {

using inference::MeanKind;
using inference::Problem;

// A draw from a known process, as a data set.
data::Dataset gp_data(Index n, std::uint64_t seed, const char* kernel = "matern52:iso", Index d = 2,
                      double noise = 0.05) {
  Rng rng(seed, "test-points");
  const Matrix x = 4 * data::uniform_points(n, d, rng);
  const Problem truth{kernels::Kernel::parse(kernel, d), noise, MeanKind::zero};
  auto draw = studies::draw_from_gp(truth, x, {.seed = seed, .memory_bytes = 1 << 30});
  return data::make_dataset(x, std::move(draw.target));
}

FitOptions fixed_options(const char* kernel = "matern52:iso") {
  FitOptions options;
  options.method.kernel = kernel;
  options.method.lengthscale = {0.8};
  options.method.signal_variance = 1.2;
  options.method.noise = 0.05;
  options.train.train = "none";
  return options;
}

struct Exact {
  Vector mean, variance;
};

// Universal kriging in dense Eigen algebra on the model's own scale, returned in target units.
Exact dense_prediction(const KernelMachine& model, const data::Dataset& data, const Matrix& at) {
  Matrix x = data.inputs;
  Vector y = data.target;
  Matrix xs = at;
  model.scaling.scale_inputs(x);
  model.scaling.scale_inputs(xs);
  model.scaling.scale_target(y);
  const auto& kernel = model.problem.kernel;
  Matrix h = kernel.reference_matrix(x, x);
  h.diagonal() += model.noise().vector(h.rows());
  const Eigen::LLT<Matrix> llt(h);
  const Matrix a = inference::mean_basis(model.problem.mean, x);
  const Matrix as = inference::mean_basis(model.problem.mean, xs);
  const Matrix ks = kernel.reference_matrix(x, xs);
  const Matrix hk = llt.solve(ks);
  Exact out;
  out.variance =
      kernel.diagonal(xs) - (ks.array() * hk.array()).colwise().sum().matrix().transpose();
  Vector beta = Vector::Zero(a.cols());
  if (a.cols() > 0) {
    const Matrix ha = llt.solve(a);
    const Matrix covariance = (a.transpose() * ha).inverse();
    beta = covariance * (ha.transpose() * y);
    const Matrix q = as.transpose() - ha.transpose() * ks;
    out.variance += (q.array() * (covariance * q).array()).colwise().sum().matrix().transpose();
  }
  out.mean = ks.transpose() * llt.solve(y - a * beta) + as * beta;
  model.scaling.unscale_target(out.mean);
  out.variance *= model.scaling.target_sd * model.scaling.target_sd;
  return out;
}

Matrix test_points(Index m, Index d = 2) {
  Rng rng(99, "test-points-at");
  return 5 * data::uniform_points(m, d, rng).array() - 0.5;  // some outside the data
}

class EveryMean : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryMean, DirectFitIsDenseAlgebra) {
  const auto data = gp_data(300, 1);
  auto options = fixed_options();
  options.method.mean = GetParam();
  auto fitted = fit(data, options);
  const auto exact = dense_prediction(fitted.model, data, test_points(40));
  const Predictor predictor(fitted.model, {});
  const auto p = predictor.predict(test_points(40));
  // Condition about 1e4 in double: 1e-10 relative.
  EXPECT_LE((p.mean - exact.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((p.latent_sd.array().square().matrix() - exact.variance).cwiseAbs().maxCoeff(), 1e-9);
  const double noise = fitted.model.problem.noise() * std::pow(fitted.model.scaling.target_sd, 2);
  EXPECT_LE((p.sd_obs.array().square() - p.latent_sd.array().square() - noise).abs().maxCoeff(),
            1e-12);
}

TEST_P(EveryMean, CertificateBoundsTheErrorOfLooseSolves) {
  const auto data = gp_data(400, 2);
  for (const double tolerance : {1e-1, 1e-2, 1e-4, 1e-8}) {
    for (const char* precision : {"double", "mixed"}) {
      auto options = fixed_options();
      options.method.mean = GetParam();
      options.method.solver = "cg";
      options.method.precision = precision;
      options.method.preconditioner = "none";
      options.method.tolerance = tolerance;
      options.method.accuracy = 0;  // or loose solves would not stay loose
      const auto fitted = fit(data, options);
      const auto exact = dense_prediction(fitted.model, data, test_points(60));
      PredictOptions predict_options;
      predict_options.solver = "cg";
      const Predictor predictor(fitted.model, predict_options);
      const auto p = predictor.predict(test_points(60));
      for (Index i = 0; i < 60; ++i)
        EXPECT_LE(std::abs(p.mean(i) - exact.mean(i)), p.error_bound(i))
            << "tolerance " << tolerance << " point " << i;
      EXPECT_LE(p.error_bound.maxCoeff(), 1.001 * fitted.model.certificate.mean_error_bound * 3)
          << "the run's bound is of the same size";
      ASSERT_EQ(p.error_estimate.rows(), 60);
      EXPECT_TRUE((p.error_estimate.array() <= p.error_bound.array()).all());
      // Where the variance is known, what the data explain of k** counts, not all of it.
      predict_options.variance.method = "none";
      const auto means = Predictor(fitted.model, predict_options).predict(test_points(60));
      EXPECT_TRUE((p.error_bound.array() <= means.error_bound.array() * (1 + 1e-12)).all());
      EXPECT_LT(p.error_bound.sum(), means.error_bound.sum());
      const Vector exact_sd = exact.variance.cwiseMax(0).cwiseSqrt();
      EXPECT_LE((p.latent_sd - exact_sd).cwiseAbs().maxCoeff(), *p.sd_error_bound + 1e-9);
      // Stated, and good: a thousandth of the noise variance.
      EXPECT_LE((p.latent_sd.array().square().matrix() - exact.variance).cwiseAbs().maxCoeff(),
                1.1e-3 * fitted.model.noise()(0) * std::pow(fitted.model.scaling.target_sd, 2));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Means, EveryMean, ::testing::Values("zero", "constant", "linear"));

TEST(Regression, LearnsHyperparametersOfKnownTruth) {
  const auto data = gp_data(600, 3, "rbf:iso", 1, 0.1);
  FitOptions options;
  options.method.kernel = "rbf:iso";
  const auto fitted = fit(data, options);
  const auto& model = fitted.model;
  const double lengthscale =
      std::exp(model.problem.kernel.log_parameters()(1)) * model.scaling.input_sd(0);
  const double noise = model.problem.noise() * std::pow(model.scaling.target_sd, 2);
  // 600 points, 4 lengthscales wide: noise known to about 6 %, lengthscale to about 15 %.
  EXPECT_NEAR(noise, 0.1, 0.025);
  EXPECT_NEAR(lengthscale, 1.0, 0.45);
  EXPECT_EQ(fitted.likelihood.method, "cholesky");
  // A maximum: the gradient per row is small.
  EXPECT_LE(fitted.likelihood.gradient.cwiseAbs().maxCoeff() / 600, 1e-3);
}

TEST(Regression, WithoutEvidenceTheModelIsTheSame) {
  const auto data = gp_data(80, 5);
  auto options = fixed_options();
  options.method.solver = "cg";
  const auto with = fit(data, options);
  options.evidence = false;
  const auto without = fit(data, options);
  EXPECT_TRUE(with.likelihood.known);
  EXPECT_FALSE(without.likelihood.known);
  EXPECT_EQ(without.likelihood.method, "none");
  EXPECT_EQ(with.model.functions[0].weights.w, without.model.functions[0].weights.w);
}

TEST(Regression, ModelFilesGiveTheSameBits) {
  const auto data = gp_data(200, 4);
  auto options = fixed_options();
  options.method.mean = "linear";
  const auto fitted = fit(data, options);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  fitted.model.save(path);
  const Predictor before(fitted.model, {});
  const Predictor after(KernelMachine::load(path), {});
  const auto p = before.predict(test_points(20));
  const auto q = after.predict(test_points(20));
  EXPECT_EQ(p.mean, q.mean);
  EXPECT_EQ(p.latent_sd, q.latent_sd);
  EXPECT_EQ(p.error_bound, q.error_bound);
}

TEST(Regression, LeavesMayNameTheirInputs) {
  const auto data = gp_data(200, 4, "matern32(0,1) * matern12(2)", 3);
  FitOptions options;
  options.method.kernel = "matern32(x1,x2) * matern12(x3)";
  options.train.restarts = 0;
  const auto fitted = fit(data, options);
  EXPECT_EQ(fitted.model.problem.kernel.text(), options.method.kernel);
  EXPECT_EQ(fitted.model.problem.kernel.num_parameters(), 4);
  // Learned by gradients: at the end they are those of a maximum, and the fit is dense algebra.
  const auto rows = scale(data, true).data;
  const auto evidence = inference::exact_evidence(fitted.model.problem, rows, true);
  EXPECT_LE(evidence.gradient.cwiseAbs().maxCoeff(), 0.05);
  const Matrix at = test_points(30, 3);
  const auto exact = dense_prediction(fitted.model, data, at);
  const auto before = Predictor(fitted.model, {}).predict(at);
  EXPECT_LE((before.mean - exact.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((before.latent_sd.col(0).cwiseAbs2() - exact.variance).cwiseAbs().maxCoeff(), 1e-9);
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  fitted.model.save(path);
  const auto loaded = KernelMachine::load(path);
  EXPECT_EQ(loaded.problem.kernel.text(), options.method.kernel);
  const auto after = Predictor(loaded, {}).predict(at);
  EXPECT_TRUE((before.mean.array() == after.mean.array()).all());
  EXPECT_TRUE((before.sd_obs.array() == after.sd_obs.array()).all());
  options.method.kernel = "rbf(x4)";
  EXPECT_THROW(fit(data, options), InvalidArgument);
}

TEST(Regression, BlocksDoNotChangeTheMean) {
  const auto data = gp_data(200, 5);
  const Predictor predictor(fit(data, fixed_options()).model, {});
  const Matrix at = test_points(700);  // several blocks
  const auto whole = predictor.predict(at);
  const auto tail = predictor.predict(at.bottomRows(13));
  // The same sums in other tiles: equal to rounding.
  EXPECT_LE((whole.mean.tail(13) - tail.mean).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LE((whole.latent_sd.bottomRows(13) - tail.latent_sd).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(Regression, ThreadsDoNotChangeBits) {
  const auto data = gp_data(700, 6);
  FitOptions options;
  options.method.kernel = "rbf";
  options.train.steps = 5;
  const int before = num_threads();
  const auto run = [&](int threads) {
    set_num_threads(threads);
    auto fitted = fit(data, options);
    return Predictor(fitted.model, {}).predict(test_points(30));
  };
  const auto one = run(1);
  const auto three = run(3);
  set_num_threads(before);
  EXPECT_EQ(one.mean, three.mean);
  EXPECT_EQ(one.sd_obs, three.sd_obs);
}

TEST(Regression, ResumedTrainingEndsWithTheSameBits) {
  const auto data = gp_data(300, 7);
  FitOptions options;
  options.method.kernel = "rbf";
  options.train.steps = 15;
  options.train.restarts = 1;
  const auto whole = fit(data, options);

  const testing::TemporaryFolder folder;
  options.train.checkpoint = folder.file("checkpoint");
  int calls = 0;
  const auto part = fit(data, options, [&](const Progress& p) {
    if (p.between_tiles || p.stage != "learn") return Action::proceed;
    return ++calls == 7 ? Action::stop : Action::proceed;
  });
  EXPECT_TRUE(part.interrupted());
  ASSERT_TRUE(std::filesystem::exists(options.train.checkpoint));
  const auto resumed = fit(data, options);
  EXPECT_GT(resumed.training.resumed_evaluations, 0);
  EXPECT_EQ(resumed.model.problem.log_parameters(), whole.model.problem.log_parameters());
  EXPECT_EQ(resumed.model.function().weights.w, whole.model.function().weights.w);

  options.method.seed = 1;
  EXPECT_THROW(fit(data, options), InvalidArgument);  // another run's checkpoint
}

// Several starts and levels are one piece of work to whoever waits for it.
TEST(Regression, ProgressOfLearningNeverFalls) {
  const auto data = gp_data(600, 7);
  for (const auto* train : {"exact", "lbfgs"}) {
    FitOptions options;
    options.method.kernel = "rbf";
    options.train.train = train;
    options.train.restarts = 2;
    double last = -1;
    int told = 0;
    fit(data, options, [&](const Progress& p) {
      if (p.between_tiles || !p.stage.starts_with("learn")) return Action::proceed;
      EXPECT_GE(p.fraction, last) << train << ", " << p.stage;
      EXPECT_LE(p.fraction, 1);
      last = p.fraction;
      ++told;
      return Action::proceed;
    });
    EXPECT_GT(told, 5) << train;
    EXPECT_GT(last, 0.5) << train;
  }
}

// Metamorphic laws: what must not matter does not.
class Metamorphic : public ::testing::Test {
 protected:
  data::Dataset base = gp_data(150, 8);
  Matrix at = test_points(25);
  Predictions predict(const data::Dataset& data, const FitOptions& options, const Matrix& where) {
    return Predictor(fit(data, options).model, {}).predict(where);
  }
};

TEST_F(Metamorphic, RowOrder) {
  const auto order = Rng(1, "order").permutation(base.size());
  Matrix x(base.inputs.rows(), base.inputs.cols());
  Vector y(base.size());
  for (Index i = 0; i < base.size(); ++i) {
    x.row(i) = base.inputs.row(order[static_cast<std::size_t>(i)]);
    y(i) = base.target(order[static_cast<std::size_t>(i)]);
  }
  const auto p = predict(base, fixed_options(), at);
  const auto q = predict(data::make_dataset(x, y), fixed_options(), at);
  EXPECT_LE((p.mean - q.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((p.sd_obs - q.sd_obs).cwiseAbs().maxCoeff(), 1e-10);
}

TEST_F(Metamorphic, TranslationAndScale) {
  const Matrix moved = base.inputs.array() * 1e3 + 5e5;
  const Vector target = 100 * base.target.array() - 7;
  const auto p = predict(base, fixed_options(), at);
  const auto q =
      predict(data::make_dataset(moved, target), fixed_options(), at.array() * 1e3 + 5e5);
  EXPECT_LE((100 * p.mean.array() - 7 - q.mean.array()).abs().maxCoeff(), 1e-6);
  EXPECT_LE((100 * p.sd_obs - q.sd_obs).cwiseAbs().maxCoeff(), 1e-7);
}

TEST_F(Metamorphic, EveryRowTwiceIsHalfTheNoise) {
  Matrix x(300, 2);
  Vector y(300);
  x << base.inputs, base.inputs;
  y << base.target, base.target;
  auto options = fixed_options();
  const auto twice = predict(data::make_dataset(x, y), options, at);
  options.method.noise = 0.025;
  const auto half = predict(base, options, at);
  EXPECT_LE((twice.mean - half.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((twice.latent_sd - half.latent_sd).cwiseAbs().maxCoeff(), 1e-9);
}

TEST_F(Metamorphic, InfiniteNoiseGivesThePrior) {
  auto options = fixed_options();
  options.method.noise = 1e9;
  const auto p = predict(base, options, at);
  const double sd = std::sqrt(1.2 * std::pow(fit(base, options).model.scaling.target_sd, 2));
  EXPECT_LE((p.mean.array() - base.target.mean()).abs().maxCoeff(), 1e-5);
  EXPECT_LE((p.latent_sd.array() - sd).abs().maxCoeff(), 1e-6);
}

// 95 % intervals of learned models cover 95 % of new points, over 50 simulated processes.
TEST(Calibration, CoverageIsNominal) {
  Index inside = 0;
  Index total = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto all = gp_data(250, 100 + seed, "matern32:iso", 2, 0.1);
    const auto train = data::make_dataset(all.inputs.topRows(200), all.target.head(200));
    FitOptions options;
    options.method.kernel = "matern32:iso";
    options.train.restarts = 0;
    const auto p = Predictor(fit(train, options).model, {}).predict(all.inputs.bottomRows(50));
    const Vector z = (all.target.tail(50) - p.mean).cwiseQuotient(p.sd_obs).cwiseAbs();
    inside += (z.array() <= 1.959964).count();
    total += 50;
  }
  const double coverage = static_cast<double>(inside) / static_cast<double>(total);
  // 2,500 points, correlated within a draw: standard deviation about 0.006.
  EXPECT_GE(coverage, 0.93);
  EXPECT_LE(coverage, 0.97);
}

TEST(Regression, DamagedModelsAreRefusedAtEveryByte) {
  const auto data = gp_data(8, 9);
  auto options = fixed_options();
  options.method.mean = "constant";
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  fit(data, options).model.save(path);
  std::ifstream in(path, std::ios::binary);
  const std::vector<unsigned char> good{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= 0x55;
    EXPECT_THROW(KernelMachine::from_file(data::parse_array_file(bad, "bad", "model"), "bad"),
                 ModelFileError)
        << "byte " << i;
  }
}

}  // namespace regression_test
}  // namespace mercer::models
