#include "mercer/studies/compare_approximations.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::studies {
namespace compare_approximations_test {

data::Dataset smooth(Index n, std::uint64_t seed) {
  Matrix x(n, 1);
  Vector y(n);
  Rng rng(seed, "comparison");
  rng.fill_uniform(x);
  for (Index i = 0; i < n; ++i) y(i) = std::sin(9 * x(i, 0)) + 0.1 * rng.normal();
  return data::make_dataset(x, y);
}

TestRows rows_of(const data::Dataset& data) {
  return {data.inputs, data.target, {}, [](Index row) { return std::to_string(row); }};
}

models::FitOptions fit_options() {
  models::FitOptions fit;
  fit.train.train = "none";
  fit.method.lengthscale = {0.4};
  fit.method.noise = 0.02;
  return fit;
}

TEST(CompareApproximations, MoreBasePointsAreNearerToTheExactPosterior) {
  const auto data = smooth(80, 1), test = smooth(25, 2);
  ApproximationsOptions options;
  options.methods = {"vfe", "exact", "rbcm"};
  options.ranks = {4, 20};
  options.check_rows = 10;
  const auto result = compare_approximations(data, rows_of(test), fit_options(), options);
  ASSERT_EQ(result.runs.size(), 4u);
  const auto& few = result.runs[0];
  const auto& many = result.runs[1];
  const auto& exact = result.runs[2];
  const auto& committee = result.runs[3];
  EXPECT_EQ(few.method, "vfe");
  EXPECT_EQ(exact.method, "exact");
  EXPECT_EQ(exact.evidence_kind, "exact");
  EXPECT_EQ(few.evidence_kind, "bound");
  EXPECT_FALSE(exact.mean_rms.has_value());
  ASSERT_TRUE(few.mean_rms && many.mean_rms && few.check && many.check && committee.mean_rms);
  EXPECT_LT(*many.mean_rms, *few.mean_rms);
  EXPECT_LT(many.check->kl, few.check->kl);
  EXPECT_EQ(many.check->rows, 10);
  // A bound: never above, and growing with the points.
  EXPECT_LT(few.likelihood.value, many.likelihood.value);
  EXPECT_LE(many.likelihood.value, exact.likelihood.value + 1e-8);
  EXPECT_FALSE(committee.rank.has_value());
  EXPECT_GT(exact.scores.numbers->n, 0);
}

TEST(CompareApproximations, HyperparametersOfTheExactFitForAll) {
  const auto data = smooth(60, 1), test = smooth(15, 2);
  auto fit = fit_options();
  fit.train.train = "auto";
  fit.train.restarts = 0;
  ApproximationsOptions options;
  options.methods = {"exact", "vfe"};
  options.ranks = {60};
  options.learn = "once";
  options.check_rows = 5;
  const auto result = compare_approximations(data, rows_of(test), fit, options);
  ASSERT_EQ(result.runs.size(), 2u);
  ASSERT_TRUE(result.runs[1].mean_rms);
  // All rows are base points, and the hyperparameters are the same: nothing is lost but rounding
  // and jitter.
  EXPECT_LT(*result.runs[1].mean_max, 1e-5);
}

// The second method of an evidence is what it would have been on its own: same hyperparameters,
// base points and blocks.
TEST(CompareApproximations, MethodsOfOneEvidenceLearnOnce) {
  const auto data = smooth(80, 1), test = smooth(25, 2);
  auto fit = fit_options();
  fit.train.train = "auto";
  fit.train.restarts = 0;
  ApproximationsOptions options;
  options.methods = {"srm", "vfe", "dtc", "pitc", "pic", "rbcm"};
  options.ranks = {5, 12};
  fit.method.preconditioning.blocks = 4;
  const auto together = compare_approximations(data, rows_of(test), fit, options);
  ASSERT_EQ(together.runs.size(), 11u);
  for (const auto& run : together.runs) {
    EXPECT_EQ(run.learned_with, run.method == "dtc" ? "srm" : run.method == "pic" ? "pitc" : "");
    EXPECT_GT(run.fit_seconds, 0);
  }
  options.methods = {"dtc", "pic"};
  const auto alone = compare_approximations(data, rows_of(test), fit, options);
  const auto run_of = [](const auto& runs, const std::string& method, Index rank) {
    return *std::find_if(runs.begin(), runs.end(),
                         [&](const auto& r) { return r.method == method && r.rank == rank; });
  };
  for (const auto& one : alone.runs) {
    const auto both = run_of(together.runs, one.method, *one.rank);
    EXPECT_NEAR(both.scores.numbers->rmse, one.scores.numbers->rmse, 1e-9) << one.method;
    EXPECT_NEAR(both.scores.numbers->nll, one.scores.numbers->nll, 1e-7) << one.method;
    EXPECT_NEAR(both.likelihood.value, one.likelihood.value, 1e-6) << one.method;
  }
}

TEST(CompareApproximations, TakesAnExactModelThatIsGiven) {
  const auto data = smooth(60, 1), test = smooth(15, 2);
  const auto fit = fit_options();
  ApproximationsOptions options;
  options.methods = {"exact", "vfe"};
  options.ranks = {8};
  options.check_rows = 5;
  const auto exact = models::fit(data, fit).model;
  const auto own = compare_approximations(data, rows_of(test), fit, options);
  const auto given = compare_approximations(data, rows_of(test), fit, options, {}, &exact);
  EXPECT_FALSE(own.runs[0].given);
  EXPECT_TRUE(given.runs[0].given);
  EXPECT_EQ(given.runs[0].fit_seconds, 0);
  ASSERT_TRUE(given.runs[1].mean_rms && given.runs[1].check);
  EXPECT_EQ(*given.runs[1].mean_rms, *own.runs[1].mean_rms);
  EXPECT_EQ(given.runs[1].check->kl, own.runs[1].check->kl);
}

TEST(CompareApproximations, WhatCannotBeRunSaysWhy) {
  const auto data = smooth(30, 1), test = smooth(5, 2);
  ApproximationsOptions options;
  options.methods = {"vfe"};
  options.ranks = {10, 31};
  options.check_rows = 0;
  const auto result = compare_approximations(data, rows_of(test), fit_options(), options);
  ASSERT_EQ(result.runs.size(), 2u);
  EXPECT_TRUE(result.runs[0].skipped.empty());
  EXPECT_FALSE(result.runs[0].mean_rms.has_value());
  EXPECT_NE(result.runs[1].skipped.find("`rank` is 31"), std::string::npos);
  options.learn = "once";
  EXPECT_THROW(compare_approximations(data, rows_of(test), fit_options(), options),
               InvalidArgument);
}

TEST(CompareApproximations, WhatIsNamedTwiceIsRefused) {
  const auto data = smooth(30, 1), test = smooth(5, 2);
  ApproximationsOptions options;
  options.methods = {"vfe", "srm", "vfe"};
  options.ranks = {10};
  EXPECT_THROW(compare_approximations(data, rows_of(test), fit_options(), options),
               InvalidArgument);
  options.methods = {"vfe"};
  options.ranks = {10, 10};
  EXPECT_THROW(compare_approximations(data, rows_of(test), fit_options(), options),
               InvalidArgument);
}

TEST(CompareApproximations, StopsWithWhatIsDone) {
  const auto data = smooth(30, 1), test = smooth(5, 2);
  ApproximationsOptions options;
  options.methods = {"exact", "vfe"};
  options.ranks = {5};
  const auto result =
      compare_approximations(data, rows_of(test), fit_options(), options, [](const Progress& now) {
        return now.detail.find("vfe") != std::string::npos ? Action::stop : Action::proceed;
      });
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.runs.size(), 1u);
}

}  // namespace compare_approximations_test
}  // namespace mercer::studies
