// Classes that softmax couples, from fit through the model file to predictions.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace softmax_fit_test {

using testing::same_bits;
using testing::WithThreads;

Matrix points(Index n, std::uint64_t seed) {
  Matrix x(n, 2);
  Rng(seed, "points").fill_normal(x);
  return x;
}

// Classes by angle, one in twenty of another.
data::Dataset class_data(Index n, int classes) {
  Matrix x = points(n, 5);
  Rng rng(6, "labels");
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    const double angle = (std::atan2(x(i, 1), x(i, 0)) + M_PI) / (2 * M_PI);
    y(i) = std::min(classes - 1, static_cast<int>(angle * classes));
    if (rng.uniform() < 0.05) y(i) = static_cast<double>(rng.index(classes));
  }
  return data::make_dataset(std::move(x), std::move(y));
}

FitOptions fixed(const data::Dataset& data, double variance = 4.0) {
  FitOptions options;
  options.likelihood = "softmax";
  options.classes = find_classes(data);
  options.method.kernel = "matern52:iso";
  options.method.lengthscale = {1.0};
  options.method.signal_variance = variance;
  options.train.train = "none";
  return options;
}

PredictOptions by(const std::string& method, const std::string& solver = "auto") {
  PredictOptions options;
  options.variance.method = method;
  options.solver = solver;
  if (method == "samples") options.variance.check_rows = 0;
  return options;
}

// Means and covariances of the functions at a row, by matrices of N C rows.
struct Dense {
  Vector mean;
  Matrix covariance;
};
Dense dense_at(const KernelMachine& model, ConstVectorView input) {
  const Index n = model.x.rows(), c = model.num_functions();
  Matrix at = input.transpose();
  model.scaling.scale_inputs(at);
  const Matrix k = model.problem.kernel.reference_matrix(model.x, model.x);
  const Vector cross = model.problem.kernel.reference_matrix(model.x, at).col(0);
  Matrix big = Matrix::Zero(n * c, n * c), w = big, wide = Matrix::Zero(n * c, c);
  Dense out{Vector(c), Matrix()};
  for (Index j = 0; j < c; ++j) {
    big.block(j * n, j * n, n, n) = k;
    wide.col(j).segment(j * n, n) = cross;
    out.mean(j) = cross.dot(model.function(j).weights.w) + model.function(j).offset;
    for (Index d = 0; d < c; ++d)
      for (Index i = 0; i < n; ++i) {
        const double p = model.function(j).curvature(i);
        w(j * n + i, d * n + i) = (j == d ? p : 0) - p * model.function(d).curvature(i);
      }
  }
  const Matrix q = (Matrix::Identity(n * c, n * c) + w * big).partialPivLu().solve(w);
  out.covariance =
      model.problem.kernel.diagonal(at)(0) * Matrix::Identity(c, c) - wide.transpose() * q * wide;
  return out;
}

TEST(SoftmaxFit, PredictionsAreThoseOfDenseAlgebra) {
  const auto data = class_data(70, 3);
  const auto model = fit(data, fixed(data)).model;
  ASSERT_EQ(model.num_functions(), 3);
  EXPECT_TRUE(model.coupled());
  EXPECT_TRUE(model.certificate.rigorous);
  const Matrix at = points(5, 9);
  const auto softmax = likelihoods::make("softmax");
  for (const auto* solver : {"cholesky", "cg"}) {
    SCOPED_TRACE(solver);
    const Predictor predictor(model, by("exact", solver));
    EXPECT_EQ(predictor.plan().system.solver, solver);
    const auto p = predictor.predict(at);
    EXPECT_FALSE(p.sd_error_bound);
    // By solves a variance is known to 1e-4 of the prior variance, 4, and it is divided by 2 sd.
    const double tolerance = solver == std::string("cg") ? 4e-4 : 1e-10;
    for (Index i = 0; i < 5; ++i) {
      const auto dense = dense_at(model, at.row(i).transpose());
      for (Index c = 0; c < 3; ++c) {
        EXPECT_NEAR(p.latent_mean(i, c), dense.mean(c), 1e-10);
        EXPECT_NEAR(std::pow(p.latent_sd(i, c), 2), dense.covariance(c, c), tolerance);
      }
      const auto expected = softmax->coupled()->class_probabilities(dense.mean, dense.covariance);
      EXPECT_LT((p.probabilities.row(i).transpose() - expected.p).cwiseAbs().maxCoeff(), tolerance);
    }
    ASSERT_TRUE(p.probability_error);
    EXPECT_GT(*p.probability_error, 0);
  }
}

TEST(SoftmaxFit, AModelFileGivesTheSamePredictions) {
  const auto data = class_data(80, 4);
  const auto model = fit(data, fixed(data)).model;
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  model.save(path);
  const auto read = KernelMachine::load(path);
  EXPECT_EQ(read.problem.likelihood->text(), "softmax");
  const Matrix at = points(40, 9);
  auto options = by("exact");
  options.variance.joint_samples = 3;
  const auto one = Predictor(model, options).predict(at),
             two = Predictor(read, options).predict(at);
  EXPECT_TRUE(same_bits(one.probabilities, two.probabilities));
  EXPECT_TRUE(same_bits(one.samples, two.samples));
  EXPECT_TRUE(same_bits(one.error_bound, two.error_bound));
}

TEST(SoftmaxFit, PiecesOfAStreamAndThreadsChangeNothing) {
  const auto data = class_data(80, 3);
  const auto model = fit(data, fixed(data)).model;
  const Matrix at = points(90, 9);
  auto options = by("samples");
  options.variance.joint_samples = 2;
  const Predictor predictor(model, options);
  const auto whole = predictor.predict(at);
  const auto piece = predictor.predict(at.middleRows(30, 20));
  // The same functions; sums over tiles that are cut elsewhere are rounded elsewhere.
  EXPECT_LT((whole.samples.middleRows(30, 20) - piece.samples).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LT((whole.probabilities.middleRows(30, 20) - piece.probabilities).cwiseAbs().maxCoeff(),
            1e-11);
  const WithThreads one(1);
  const auto alone = Predictor(model, options).predict(at);
  EXPECT_TRUE(same_bits(whole.probabilities, alone.probabilities));
}

// Twice the variance in one function of two classes, and the same probabilities.
TEST(SoftmaxFit, TwoClassesAreTheLogitWithTwiceTheVariance) {
  const auto data = class_data(90, 2);
  auto options = fixed(data, 2.0);
  options.method.tolerance = 1e-9;
  const auto softmax = fit(data, options);
  options.likelihood = "bernoulli-logit";
  options.method.signal_variance = 4.0;
  const auto logit = fit(data, options);
  ASSERT_EQ(softmax.model.num_functions(), 2);
  ASSERT_EQ(logit.model.num_functions(), 1);
  EXPECT_NEAR(softmax.likelihood.value, logit.likelihood.value, 1e-8);
  const Matrix at = points(30, 9);
  for (const auto* method : {"exact", "none"}) {
    const auto one = Predictor(softmax.model, by(method)).predict(at);
    const auto two = Predictor(logit.model, by(method)).predict(at);
    EXPECT_LT((one.probabilities - two.probabilities).cwiseAbs().maxCoeff(), 1e-8);
    EXPECT_EQ(one.probability_error, 0.0);
  }
}

// 4,000 draws: a variance is known to sqrt(2/4000), 0.022 of itself, and 4,096 features stand in
// for the prior to the same share of it; five of each.
TEST(SoftmaxFit, DrawsHaveTheCovarianceOfTheFunctions) {
  const auto data = class_data(60, 3);
  const auto model = fit(data, fixed(data)).model;
  const Matrix at = points(4, 9);
  auto options = by("samples");
  options.variance.draws = 4000;
  options.variance.joint_samples = 4000;
  const auto p = Predictor(model, options).predict(at);
  ASSERT_EQ(p.samples.cols(), 12000);
  for (Index i = 0; i < 4; ++i) {
    const auto dense = dense_at(model, at.row(i).transpose());
    Matrix draws(3, 4000);
    for (Index c = 0; c < 3; ++c)
      draws.row(c) = p.samples.row(i).segment(c * 4000, 4000).array() - p.latent_mean(i, c);
    const Matrix found = draws * draws.transpose() / 4000;
    const double share = 5 * std::sqrt(2.0 / 4000);
    EXPECT_LT((found - dense.covariance).cwiseAbs().maxCoeff(),
              share * (dense.covariance.diagonal().maxCoeff() + 4.0));
    for (Index c = 0; c < 3; ++c) EXPECT_NEAR(p.latent_sd(i, c), std::sqrt(found(c, c)), 1e-12);
  }
}

TEST(SoftmaxFit, TheErrorOfDrawsIsMeasured) {
  const auto data = class_data(60, 3);
  const auto model = fit(data, fixed(data)).model;
  const Matrix at = points(20, 9);
  auto options = by("samples");
  options.variance.check_rows = 100;
  const auto approximate = Predictor(model, options).predict(at);
  const auto exact = Predictor(model, by("exact")).predict(at);
  ASSERT_TRUE(approximate.sd_error);
  EXPECT_EQ(approximate.sd_error->rows, 20);
  EXPECT_NEAR(approximate.sd_error->largest,
              (approximate.latent_sd - exact.latent_sd).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(SoftmaxFit, WithoutVariancesItIsTheMode) {
  const auto data = class_data(60, 3);
  const auto model = fit(data, fixed(data)).model;
  const auto p = Predictor(model, by("none")).predict(points(10, 9));
  EXPECT_EQ(p.latent_sd.size(), 0);
  for (Index i = 0; i < 10; ++i) {
    const Vector weights = p.latent_mean.row(i).array().exp();
    EXPECT_LT((p.probabilities.row(i).transpose() - weights / weights.sum()).cwiseAbs().maxCoeff(),
              1e-14);
  }
}

TEST(SoftmaxFit, LearningRaisesTheEvidenceByEveryWay) {
  const auto data = class_data(150, 3);
  auto options = fixed(data, 1.0);
  const double before = fit(data, options).likelihood.value;
  options.train.restarts = 0;
  options.train.train = "lbfgs";
  const auto exact = fit(data, options);
  EXPECT_GT(exact.likelihood.value, before + 1);
  options.train.train = "newton";
  options.method.solver = "cg";
  const auto solves = fit(data, options);
  // Newton's steps on gradients by solves end when 0.1 of log evidence is left, by their estimate;
  // eight probes shift its place by a few of these, and the value is an estimate itself.
  EXPECT_GT(solves.likelihood.value, exact.likelihood.value - 3);
}

TEST(SoftmaxFit, WhatDoesNotGoWithItIsRefused) {
  const auto data = class_data(60, 3);
  auto options = fixed(data);
  options.method.mean = "constant";
  EXPECT_THROW(fit(data, options), InvalidArgument);
  options = fixed(data);
  options.method.solver = "kcg";
  EXPECT_THROW(fit(data, options), InvalidArgument);
  options = fixed(data);
  options.method.solver = "cg";
  options.method.preconditioner = "nystrom";
  EXPECT_THROW(fit(data, options), InvalidArgument);
  options = fixed(data);
  options.classes = {};
  EXPECT_THROW(fit(data, options), InvalidArgument);
  const auto model = fit(data, fixed(data)).model;
  EXPECT_THROW(Predictor(model, by("vecchia")), InvalidArgument);
  auto small = by("exact");
  small.memory = 41 << 20;
  EXPECT_NO_THROW(Predictor(model, small));
}

// The plan counts the matrices of all functions.
TEST(SoftmaxFit, FactorsThatDoNotFitAreNotTaken) {
  const auto data = class_data(400, 3);
  const auto model = fit(data, fixed(data)).model;
  // Seven matrices of 400 rows are 8.5 MiB beside the 40 MiB of program and data.
  auto tight = by("exact");
  tight.memory = 46 << 20;
  EXPECT_NE(Predictor(model, tight).plan().system.solver, "cholesky");
  tight.solver = "cholesky";
  EXPECT_THROW(Predictor(model, tight), DoesNotFit);
  tight.memory = 56 << 20;
  EXPECT_EQ(Predictor(model, tight).plan().system.solver, "cholesky");
}

}  // namespace softmax_fit_test
}  // namespace mercer::models
