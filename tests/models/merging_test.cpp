// Merged and unmerged rows say the same: likelihood, gradient, predictions, certificates.
#include "mercer/models/merging.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/scaled_data.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace merging_test {

// Groups of one to four rows with equal inputs, in mixed order; counts when asked for.
data::Dataset repeated_data(Index n, bool with_counts = false) {
  Rng rng(4, "merging-test");
  Matrix distinct(n / 2, 2), x(n, 2);
  rng.fill_normal(distinct);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    x.row(i) = distinct.row(i < n / 2 ? i : (i * i) % (n / 3));
    y(i) = 3 + x(i, 0) + std::sin(2 * x(i, 1)) + 0.3 * rng.normal();
  }
  auto data = data::make_dataset(x, y);
  if (with_counts) {
    data.noise.count.resize(n);
    for (Index i = 0; i < n; ++i) data.noise.count(i) = 1 + static_cast<double>(i % 5);
  }
  return data;
}

struct Case {
  const char* mean;
  const char* solver;
  bool counts;
};

FitOptions fixed(const Case& c) {
  FitOptions options;
  options.method.kernel = "matern52";
  options.method.lengthscale = {1.0, 0.7};
  options.method.noise = 0.08;
  options.method.mean = c.mean;
  options.method.solver = c.solver;
  options.method.tolerance = 1e-12;
  options.train.train = "none";
  options.gradient = true;
  return options;
}

class Merging : public ::testing::TestWithParam<Case> {};

TEST_P(Merging, ChangesNothing) {
  const auto data = repeated_data(200, GetParam().counts);
  auto options = fixed(GetParam());
  const auto merged = fit(data, options);
  options.merge = false;
  const auto whole = fit(data, options);
  EXPECT_EQ(merged.merged_rows, 100);
  EXPECT_EQ(whole.merged_rows, 0);
  EXPECT_EQ(merged.model.x.rows(), 100);
  EXPECT_EQ(nlohmann::json::parse(merged.model.record).at("merged_rows"), 100);

  EXPECT_EQ(merged.likelihood.known, whole.likelihood.known);
  EXPECT_EQ(merged.likelihood.rows, whole.likelihood.rows);
  ASSERT_EQ(merged.likelihood.gradient.size(), whole.likelihood.gradient.size());
  if (whole.likelihood.method == "cholesky") {
    EXPECT_NEAR(merged.likelihood.value, whole.likelihood.value,
                1e-8 * std::abs(whole.likelihood.value));
    EXPECT_LE((merged.likelihood.gradient - whole.likelihood.gradient).cwiseAbs().maxCoeff(), 1e-8);
  } else {
    // Two estimates: five standard errors of each, a false alarm in a million.
    EXPECT_NEAR(merged.likelihood.value, whole.likelihood.value,
                5 * (merged.likelihood.probe_error + whole.likelihood.probe_error) +
                    merged.likelihood.solver_error + whole.likelihood.solver_error);
  }

  Matrix at(40, 2);
  Rng(5, "merging-test").fill_normal(at);
  PredictOptions predict;
  predict.solver = GetParam().solver;
  predict.tolerance = 1e-10;
  const auto p = Predictor(merged.model, predict).predict(at);
  const auto q = Predictor(whole.model, predict).predict(at);
  EXPECT_LE((p.mean - q.mean).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_LE((p.latent_sd - q.latent_sd).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_LE((p.sd_obs - q.sd_obs).cwiseAbs().maxCoeff(), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(MeansAndSolvers, Merging,
                         ::testing::Values(Case{"zero", "cholesky", false},
                                           Case{"linear", "cholesky", false},
                                           Case{"zero", "cg", false}, Case{"linear", "cg", false},
                                           Case{"constant", "cholesky", true},
                                           Case{"linear", "cg", true}));

TEST(Merging, KeepsTheOrderOfFirstOccurrence) {
  const Matrix x{{2.0}, {1.0}, {2.0}, {3.0}, {1.0}, {2.0}};
  const Vector y{{1.0, 5.0, 2.0, 7.0, 6.0, 6.0}};
  const auto merged = merge_replicates({x, y});
  EXPECT_EQ(merged.x, (Matrix{{2.0}, {1.0}, {3.0}}));
  EXPECT_TRUE(merged.y.isApprox(Vector{{3.0, 5.5, 7.0}}, 1e-15));
  EXPECT_TRUE(merged.noise.weight.isApprox(Vector{{3.0, 2.0, 1.0}}, 1e-15));
  EXPECT_EQ(merged.replicates.merged_rows(), 3);
  EXPECT_TRUE(merged.replicates.squares.isApprox(Vector{{14.0, 0.5, 0.0}}, 1e-14));
}

TEST(Merging, LeavesAloneWhatDoesNotRepeatOrHasKnownNoise) {
  const Matrix x{{2.0}, {1.0}, {2.0}};
  const Vector y{{1.0, 5.0, 2.0}};
  EXPECT_EQ(merge_replicates({x.topRows(2), y.head(2)}).replicates.merged_rows(), 0);
  EXPECT_TRUE(merge_replicates({x.topRows(2), y.head(2)}).noise.uniform());
  const inference::RowNoise known{.known = Vector::Ones(3)};
  EXPECT_EQ(merge_replicates({x, y, {}, known}).size(), 3);
}

// The likelihood of a part of the merged rows is that of all rows that went into it.
TEST(Merging, ASubsetKeepsItsCounts) {
  const auto scaled = scale(repeated_data(60), true).data;
  const auto merged = merge_replicates(scaled);
  const std::vector<Index> some = {0, 4, 9, 12, 16, 28};
  std::vector<Index> same;
  for (Index i = 0; i < scaled.size(); ++i)
    for (const Index j : some)
      if (scaled.x.row(i) == merged.x.row(j)) same.push_back(i);
  const inference::Problem problem{kernels::Kernel::parse("rbf", 2), 0.2};
  const auto part = inference::exact_evidence(problem, merged.rows(some), true);
  const auto all = inference::exact_evidence(problem, scaled.rows(same), true);
  EXPECT_GT(same.size(), some.size());
  EXPECT_NEAR(part.value, all.value, 1e-9);
  EXPECT_LE((part.gradient - all.gradient).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(Merging, LearnsTheSameHyperparameters) {
  const auto data = repeated_data(120);
  FitOptions options;
  options.method.kernel = "rbf";
  options.train.restarts = 0;
  const auto merged = fit(data, options);
  options.merge = false;
  const auto whole = fit(data, options);
  // Two searches for one maximum, each to its own rounding.
  EXPECT_LE((merged.model.problem.log_parameters() - whole.model.problem.log_parameters())
                .cwiseAbs()
                .maxCoeff(),
            1e-2);
  EXPECT_NEAR(merged.likelihood.value, whole.likelihood.value, 1e-4);
}

class UnequalNoise : public ::testing::TestWithParam<const char*> {
 protected:
  data::Dataset data = [] {
    auto out = repeated_data(150, true);
    out.noise.variance.resize(150);
    for (Index i = 0; i < 150; ++i) out.noise.variance(i) = 0.02 * static_cast<double>(i % 11);
    return out;
  }();
};

// The bound of loose solves against exact ones, with a noise of its own for every row.
TEST_P(UnequalNoise, CertificateHolds) {
  auto options = fixed({GetParam(), "cholesky", true});
  Matrix at(50, 2);
  Rng(6, "merging-test").fill_normal(at);
  const auto exact = Predictor(fit(data, options).model, {}).predict(at);
  for (const double tolerance : {1e-1, 1e-3, 1e-6}) {
    options.method.solver = "cg";
    options.method.tolerance = tolerance;
    PredictOptions predict;
    predict.solver = "cg";
    const auto loose = Predictor(fit(data, options).model, predict).predict(at);
    EXPECT_TRUE(((loose.mean - exact.mean).array().abs() <= loose.error_bound.array()).all());
    EXPECT_LE((loose.latent_sd - exact.latent_sd).cwiseAbs().maxCoeff(),
              *loose.sd_error_bound + *exact.sd_error_bound);
  }
}

TEST_P(UnequalNoise, ModelFilesKeepIt) {
  const auto model = fit(data, fixed({GetParam(), "cholesky", true})).model;
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  model.save(path);
  const auto loaded = KernelMachine::load(path);
  EXPECT_EQ(loaded.noise().vector(150), model.noise().vector(150));
  EXPECT_EQ(loaded.certificate.residual, model.certificate.residual);
  const Matrix at = Matrix::Zero(1, 2);
  EXPECT_EQ(Predictor(loaded, {}).predict(at).latent_sd,
            Predictor(model, {}).predict(at).latent_sd);
}

INSTANTIATE_TEST_SUITE_P(Means, UnequalNoise, ::testing::Values("zero", "linear"));

TEST(NoiseColumns, AreCheckedAndScaled) {
  auto data = repeated_data(30);
  data.noise.variance = Vector::Constant(30, 0.5);
  data.noise.count = Vector::Constant(30, 4);
  const auto scaled = scale(data, true);
  const double unit = std::pow(scaled.scaling.target_sd, 2);
  EXPECT_DOUBLE_EQ(scaled.data.noise.at(0.1)(7), 0.1 / 4 + 0.5 / unit);
  data.noise.variance(3) = -1;
  EXPECT_THROW(scale(data, true), DataError);
  data.noise.variance = Vector::Ones(29);
  EXPECT_THROW(scale(data, true), DimensionMismatch);
  data.noise = {.count = Vector::Zero(30)};
  EXPECT_THROW(scale(data, true), DataError);
}

// sd_obs of an observation that is the mean of four, with a variance of its own.
TEST(NoiseColumns, CountInPredictions) {
  const auto model = fit(repeated_data(60), fixed({"zero", "cholesky", false})).model;
  const Predictor predictor(model, {});
  const Matrix at = Matrix::Zero(1, 2);
  const auto p = predictor.predict(
      at, {}, {.variance = Vector::Constant(1, 0.3), .count = Vector::Constant(1, 4.0)});
  const double s2 = model.problem.noise() * std::pow(model.scaling.target_sd, 2);
  EXPECT_NEAR(std::pow(p.sd_obs(0), 2), std::pow(p.latent_sd(0), 2) + s2 / 4 + 0.3, 1e-12);
}

}  // namespace merging_test
}  // namespace mercer::models
