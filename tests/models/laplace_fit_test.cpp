#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/models/fit.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace laplace_fit_test {

// Points in the plane, classes by angle.
data::Dataset class_data(Index n, int classes, double wrong = 0.05) {
  Matrix x(n, 2);
  Rng rng(5, "class data");
  rng.fill_normal(x);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    const double angle = (std::atan2(x(i, 1), x(i, 0)) + M_PI) / (2 * M_PI);
    y(i) = std::min(classes - 1, static_cast<int>(angle * classes));
    if (rng.uniform() < wrong) y(i) = static_cast<double>(rng.index(classes));
  }
  return data::make_dataset(std::move(x), std::move(y));
}

data::Dataset count_data(Index n) {
  Matrix x(n, 2);
  Rng rng(6, "count data");
  rng.fill_normal(x);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    // A Poisson draw by counting exponential gaps.
    const double rate = 3 * std::exp(std::sin(2 * x(i, 0)));
    double gap = 0;
    y(i) = -1;
    while (gap < rate) {
      gap -= std::log(rng.uniform());
      ++y(i);
    }
  }
  return data::make_dataset(std::move(x), std::move(y));
}

FitOptions quick(const std::string& likelihood) {
  FitOptions options;
  options.likelihood = likelihood;
  options.method.kernel = "matern52:iso";
  options.train.restarts = 0;
  return options;
}

FitOptions fixed(const std::string& likelihood) {
  auto options = quick(likelihood);
  options.train.train = "none";
  options.method.lengthscale = {1.0};
  options.method.signal_variance = 4.0;
  return options;
}

FitResult fit_with(const data::Dataset& data, FitOptions options, const Classes& classes,
                   const ProgressCallback& progress = {}) {
  options.classes = classes;
  return fit(data, options, progress);
}

TEST(Classes, IntegersAreSortedByValueAndFoundAgain) {
  Matrix x(4, 1);
  x << 1, 2, 3, 4;
  Vector y(4);
  y << 10, -1, 10, 2;
  const auto classes = find_classes(data::make_dataset(x, y));
  EXPECT_EQ(classes.labels, (std::vector<std::string>{"-1", "2", "10"}));
  EXPECT_EQ(classes.find(10), 2);
  EXPECT_FALSE(classes.find(3));
  const Matrix indicators = classes.indicators(y);
  EXPECT_EQ(indicators.rowwise().sum(), Vector::Ones(4));
  EXPECT_EQ(indicators(1, 0), 1);
}

TEST(Classes, TwoHaveOneFunction) {
  const auto data = class_data(40, 2, 0);
  const auto classes = find_classes(data);
  EXPECT_EQ(classes.functions(), 1);
  EXPECT_EQ(classes.indicators(data.target).col(0), data.target);
}

TEST(Classes, NumbersThatAreNoneAreRefused) {
  Matrix x = Matrix::Random(300, 1);
  Vector y = Vector::LinSpaced(300, 0, 1);
  EXPECT_THROW(find_classes(data::make_dataset(x, y)), DataError);
  EXPECT_FALSE(looks_like_classes(data::make_dataset(x, y)));
  y = Vector::LinSpaced(300, 0, 299);  // integers, but three hundred of them
  EXPECT_THROW(find_classes(data::make_dataset(x, y)), DataError);
  EXPECT_FALSE(looks_like_classes(data::make_dataset(x, y)));
  EXPECT_TRUE(looks_like_classes(class_data(100, 2)));
}

TEST(Classes, RatingsAreNumbersUnlessAskedFor) {
  const auto data = class_data(100, 3);
  EXPECT_FALSE(looks_like_classes(data));
  EXPECT_EQ(few_integers(data).size(), 3U);
  EXPECT_TRUE(few_integers(class_data(100, 2)).empty());
  EXPECT_TRUE(few_integers(class_data(14, 3)).empty());  // fewer than five rows each
}

TEST(ClassScores, AreThoseOfAHandCount) {
  Matrix p(4, 2);
  p << 0.9, 0.1, 0.4, 0.6, 0.3, 0.7, 0.8, 0.2;
  ClassScoreKeeper keeper;
  keeper.add(p.topRows(2), {0, 1});
  keeper.add(p.bottomRows(2), {0, 0});
  const auto s = keeper.scores();
  EXPECT_EQ(s.n, 4);
  EXPECT_DOUBLE_EQ(s.error_rate, 0.25);
  EXPECT_NEAR(s.nll, -(std::log(0.9) + std::log(0.6) + std::log(0.3) + std::log(0.8)) / 4, 1e-15);
  EXPECT_NEAR(s.brier, (0.01 + 0.16 + 0.49 + 0.04) / 4, 1e-15);
  // The member of class 1 has 0.6; the others 0.1, 0.7, 0.2: two of three pairs are right.
  ASSERT_TRUE(s.auc);
  EXPECT_NEAR(*s.auc, 2.0 / 3, 1e-15);
  Index rows = 0;
  for (const auto& bin : s.calibration) rows += bin.n;
  EXPECT_EQ(rows, 4);
}

TEST(ClassScores, TiesCountHalfAndAMissingClassHasNoCurve) {
  Matrix p(2, 2);
  p << 0.5, 0.5, 0.5, 0.5;
  ClassScoreKeeper keeper;
  keeper.add(p, {0, 1});
  EXPECT_DOUBLE_EQ(*keeper.scores().auc, 0.5);
  ClassScoreKeeper one;
  one.add(p, {1, 1});
  EXPECT_FALSE(one.scores().auc);
}

TEST(LaplaceFit, LearnsTwoClassesAndTellsThemApart) {
  const auto data = class_data(300, 2);
  const auto fit = fit_with(data, quick("bernoulli-logit"), find_classes(data));
  EXPECT_EQ(fit.solve.stop, StopReason::converged);
  EXPECT_TRUE(fit.likelihood.known);
  EXPECT_LE(fit.model.certificate.mean_error_bound, 1e-6);
  const Predictor predictor(fit.model, {});
  const auto test = class_data(301, 2, 0);
  const auto p = predictor.predict(test.inputs);
  ClassScoreKeeper keeper;
  std::vector<Index> truth;
  for (const double y : test.target) truth.push_back(static_cast<Index>(y));
  keeper.add(p.probabilities, truth);
  EXPECT_LT(keeper.scores().error_rate, 0.1);
  EXPECT_LT(keeper.scores().nll, 0.35);
}

TEST(LaplaceFit, TheRarerOfTwoClassesKeepsItsDigits) {
  const auto data = class_data(400, 2);
  for (const auto* name : {"bernoulli-logit", "bernoulli-probit"}) {
    auto options = fixed(name);
    options.method.kernel = "linear:iso";
    options.method.lengthscale.clear();
    options.standardize = false;
    const auto fit = fit_with(data, options, find_classes(data));
    // f is linear: what is certain of x is as certain of -x, for the other class.
    Matrix far(2, 2);
    far << 0, 100, 0, -100;
    const Matrix p = Predictor(fit.model, {}).predict(far).probabilities;
    EXPECT_EQ(p(0, 1), 1);
    EXPECT_GT(p(0, 0), 0);
    EXPECT_LT(p(0, 0), 1e-17);
    EXPECT_NEAR(p(0, 0) / p(1, 1), 1, 1e-9);
    EXPECT_EQ(p(0, 1), p(1, 0));
  }
}

// Where f is many tens the curvature all but vanishes; with a prior this wide it still counts.
TEST(LaplaceFit, VariancesOfAWidePriorAreThoseOfTheSmallestCurvatures) {
  const auto data = class_data(80, 2);
  auto options = fixed("bernoulli-logit");
  options.method.signal_variance = 1e5;
  const auto model = fit_with(data, options, find_classes(data)).model;
  ASSERT_LT(model.function().curvature.minCoeff(), 1e-10);
  const auto test = class_data(90, 2);
  Matrix x = test.inputs;
  model.scaling.scale_inputs(x);
  const auto& kernel = model.problem.kernel;
  const Vector root = model.function().curvature.cwiseSqrt();
  Matrix b = root.asDiagonal() * kernel.reference_matrix(model.x, model.x) * root.asDiagonal();
  b.diagonal().array() += 1;
  const Matrix k = root.asDiagonal() * kernel.reference_matrix(model.x, x);
  const Matrix solved = b.llt().solve(k);
  const Vector expected = kernel.diagonal(x) - k.cwiseProduct(solved).colwise().sum().transpose();
  const auto p = Predictor(model, {}).predict(test.inputs);
  EXPECT_LT((p.latent_sd.col(0).array().square() / expected.array() - 1).abs().maxCoeff(), 1e-6);
}

TEST(LaplaceFit, ProbabilitiesOfManyClassesSumToOne) {
  const auto data = class_data(200, 4);
  for (const auto* name : {"bernoulli-logit", "bernoulli-probit"}) {
    const auto fit = fit_with(data, fixed(name), find_classes(data));
    EXPECT_EQ(fit.model.num_functions(), 4);
    const auto p = Predictor(fit.model, {}).predict(data.inputs);
    EXPECT_LT((p.probabilities.rowwise().sum().array() - 1).abs().maxCoeff(), 1e-12);
    EXPECT_GE(p.probabilities.minCoeff(), 0);
    EXPECT_GT(p.latent_sd.minCoeff(), 0);
  }
}

TEST(LaplaceFit, SolvesAgreeWithTheFactorisation) {
  for (const auto* name : {"bernoulli-logit", "poisson"}) {
    const bool classes = std::string(name) != "poisson";
    const auto data = classes ? class_data(250, 3) : count_data(250);
    const auto found = classes ? find_classes(data) : Classes();
    auto options = fixed(name);
    options.method.tolerance = 1e-8;
    const auto exact = fit_with(data, options, found);
    options.method.solver = "cg";
    const auto solved = fit_with(data, options, found);
    EXPECT_EQ(solved.plan.system.solver, "cg");
    for (Index c = 0; c < exact.model.num_functions(); ++c)
      EXPECT_LT((exact.model.function(c).weights.w - solved.model.function(c).weights.w)
                    .cwiseAbs()
                    .maxCoeff(),
                1e-6);
    PredictOptions how;
    how.variance.method = "exact";
    const auto a = Predictor(exact.model, how).predict(data.inputs.topRows(40));
    const auto b = Predictor(solved.model, how).predict(data.inputs.topRows(40));
    EXPECT_LT((a.latent_mean - b.latent_mean).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_LT((a.latent_sd - b.latent_sd).cwiseAbs().maxCoeff(), 2e-2);
    ASSERT_TRUE(solved.likelihood.known);
    EXPECT_EQ(solved.likelihood.method, "lanczos");
    // The interval is one of 95 %: three times it is exceeded once in ten thousand.
    const double half = 0.5 * (solved.likelihood.high - solved.likelihood.low);
    EXPECT_NEAR(solved.likelihood.value, exact.likelihood.value, 3 * half + 1e-3);
  }
}

TEST(LaplaceFit, CountsArePredictedWithTheirSpread) {
  const auto data = count_data(400);
  const auto fit = fit_with(data, quick("poisson"), {});
  const Predictor predictor(fit.model, {});
  const auto test = count_data(401);
  const auto p = predictor.predict(test.inputs);
  PredictionScores keeper(predictor);
  keeper.add(p, test.target, [](Index) { return ""; });
  const auto s = *keeper.scores().numbers;
  EXPECT_LT(*s.smse, 0.7);
  EXPECT_GT(s.coverage90, 0.85);  // of counts, which jump, the interval holds 90 % or more
  EXPECT_TRUE((p.q05.array() <= p.q95.array()).all());
}

TEST(LaplaceFit, OutliersDoNotPullAStudentT) {
  Matrix x(120, 1);
  x.col(0) = Vector::LinSpaced(120, -3, 3);
  Vector y = x.col(0).array().sin();
  Rng rng(8, "outliers");
  for (Index i = 0; i < 120; ++i) y(i) += 0.05 * rng.normal() + (i % 10 == 3 ? 5.0 : 0.0);
  const auto data = data::make_dataset(x, y);
  auto options = quick("student-t");
  const auto fit = fit_with(data, options, {});
  EXPECT_FALSE(fit.model.certificate.rigorous);
  const auto p = Predictor(fit.model, {}).predict(x);
  const Vector truth = x.col(0).array().sin();
  EXPECT_LT((p.mean - truth).cwiseAbs().mean(), 0.1);
}

TEST(LaplaceFit, AModelReadBackPredictsTheSameBits) {
  const testing::TemporaryFolder folder;
  const auto path = folder.file("model.mcr");
  const auto data = class_data(150, 3);
  const auto fit = fit_with(data, fixed("bernoulli-probit"), find_classes(data));
  fit.model.save(path);
  const auto model = KernelMachine::load(path);
  EXPECT_EQ(model.classes.labels, fit.model.classes.labels);
  const auto a = Predictor(fit.model, {}).predict(data.inputs);
  const auto b = Predictor(model, {}).predict(data.inputs);
  EXPECT_EQ(a.probabilities, b.probabilities);
}

TEST(LaplaceFit, ARunThatWasStoppedGoesOnToTheSameBits) {
  const auto data = class_data(150, 2);
  const auto classes = find_classes(data);
  for (const auto* method : {"lbfgs", "adam", "newton"}) {
    auto options = quick("bernoulli-logit");
    options.train.train = method;
    options.train.steps = 12;
    const auto whole = fit_with(data, options, classes);
    const testing::TemporaryFolder folder;
    const auto path = folder.file("checkpoint");
    options.train.checkpoint = path;
    int calls = 0;
    bool stopped = false;
    try {
      stopped = fit_with(data, options, classes, [&](const Progress& progress) {
                  // By solves: after a step that was not the first.
                  const bool by_solves = std::string(method) != "lbfgs";
                  const bool counts =
                      by_solves ? progress.stage == "learn (all rows)" &&
                                      progress.detail.find("of its solves") == std::string::npos &&
                                      !progress.detail.starts_with("step 0")
                                : progress.stage.starts_with("learn");
                  const bool enough = counts && ++calls > (by_solves ? 0 : 6);
                  return enough ? Action::stop : Action::proceed;
                }).interrupted();
    } catch (const Interrupted&) {
      stopped = true;
    }
    EXPECT_TRUE(stopped) << method;
    ASSERT_TRUE(std::filesystem::exists(path)) << method;
    const auto resumed = fit_with(data, options, classes);
    EXPECT_EQ(resumed.model.problem.log_parameters(), whole.model.problem.log_parameters())
        << method;
    EXPECT_EQ(resumed.training.resumed_evaluations > 0, std::string(method) != "adam") << method;
    EXPECT_EQ(resumed.training.gradients(), whole.training.gradients()) << method;
    EXPECT_EQ(resumed.training.resumed_gradients > 0, std::string(method) != "lbfgs");
  }
}

// On 100 rows to begin with; the gradients of all 600 lead on from there.
TEST(LaplaceFit, NewtonsStepsBySolvesEndNearTheExactMaximum) {
  const auto data = class_data(600, 3);
  const auto classes = find_classes(data);
  auto options = quick("bernoulli-logit");
  options.train.train = "lbfgs";
  const auto exact = fit_with(data, options, classes);
  options.train.train = "newton";
  options.train.probes = 16;
  const auto solved = fit_with(data, options, classes);
  EXPECT_EQ(solved.plan.train_method, "newton");
  EXPECT_LT(solved.plan.start_rows, 200);
  EXPECT_EQ(solved.training.stop, StopReason::converged);
  EXPECT_LE(solved.training.gradients(), 12);
  ASSERT_TRUE(solved.training.history.back().predicted_gain);
  ASSERT_TRUE(exact.likelihood.known);
  // Both evidences are by Cholesky; the probes are one draw: two log units are far beyond their
  // noise, which the run itself states.
  EXPECT_NEAR(solved.likelihood.value, exact.likelihood.value, 2.0);
}

TEST(LaplaceFit, AdamBySolvesEndsNearTheExactMaximum) {
  const auto data = class_data(300, 2);
  const auto classes = find_classes(data);
  const auto exact = fit_with(data, quick("bernoulli-logit"), classes);
  auto options = quick("bernoulli-logit");
  options.train.train = "adam";
  options.train.steps = 80;
  options.train.probes = 16;
  const auto learned = fit_with(data, options, classes);
  // A concave log evidence can gain no more than its slope times the way that is left. Learning
  // ends where the slope is not told from the noise of the probes, which the run states: four
  // standard errors of the last gradient, and it was one of several whose mean was tested, so one
  // log unit more.
  const Vector way = exact.model.problem.log_parameters() - learned.model.problem.log_parameters();
  const auto& end = learned.training;
  const double left = (end.gradient.cwiseAbs() + 4 * end.standard_error).dot(way.cwiseAbs());
  EXPECT_GT(learned.likelihood.value, exact.likelihood.value - 1.0 - left);
  // Whatever that is, it is little of what there was to gain.
  options.train = {};
  options.train.train = "none";
  const double start = fit_with(data, options, classes).likelihood.value;
  EXPECT_GT(learned.likelihood.value - start, 0.9 * (exact.likelihood.value - start));
  EXPECT_EQ(learned.training.history.size(), static_cast<std::size_t>(learned.training.steps));
}

TEST(LaplaceFit, KernelConjugateGradientsFindTheSameMode) {
  for (const int count : {2, 3}) {
    const auto data = class_data(150, count);
    const auto classes = find_classes(data);
    auto options = fixed("bernoulli-logit");
    options.mean_only = true;
    const auto newton = fit_with(data, options, classes);
    options.method.solver = "kcg";
    const auto kcg = fit_with(data, options, classes);
    EXPECT_EQ(kcg.solve.stop, StopReason::converged);
    EXPECT_GT(kcg.solve.iterations, 0);
    EXPECT_EQ(kcg.newton_steps, 0);
    EXPECT_EQ(kcg.preconditioner.name, "none");  // what it says of the mode, and of the plan
    EXPECT_EQ(kcg.plan.system.preconditioner, "none");
    EXPECT_TRUE(kcg.likelihood.known);  // by preconditioned solves at the mode
    const auto a = Predictor(newton.model, {}).predict(data.inputs);
    const auto b = Predictor(kcg.model, {}).predict(data.inputs);
    // No further apart than the bounds of both say.
    const double bound =
        newton.model.certificate.mean_error_bound + kcg.model.certificate.mean_error_bound;
    EXPECT_LE((a.latent_mean - b.latent_mean).cwiseAbs().maxCoeff(), bound);
    EXPECT_LE(kcg.model.certificate.mean_error_bound, options.method.tolerance);
    EXPECT_EQ(b.latent_sd.size(), 0);
  }
  auto options = fixed("bernoulli-probit");
  options.method.solver = "kcg";
  const auto data = class_data(60, 2);
  EXPECT_THROW(fit_with(data, options, find_classes(data)), InvalidArgument);
}

TEST(KernelRidge, HasTheMeanOfAProcessAndNoUncertainty) {
  const auto data = count_data(120);
  FitOptions options;
  options.method.kernel = "rbf:iso";
  options.train.train = "none";
  const auto gp = fit(data, options);
  options.mean_only = true;
  for (const auto* solver : {"auto", "kcg"}) {
    options.method.solver = solver;
    const auto krr = fit(data, options);
    EXPECT_EQ(krr.solve.stop, StopReason::converged) << solver;
    EXPECT_LE(krr.model.certificate.relative_residual, 1e-6) << solver;
    const Predictor exact(gp.model, {}), mean(krr.model, {});
    const auto p = mean.predict(data.inputs);
    EXPECT_LT((p.mean - exact.predict(data.inputs).mean).cwiseAbs().maxCoeff(), 1e-4) << solver;
    EXPECT_EQ(p.sd_obs.size(), 0) << solver;
    PredictOptions with_variance;
    with_variance.variance.method = "exact";
    EXPECT_THROW(Predictor(krr.model, with_variance), InvalidArgument);
  }
}

TEST(LaplaceFit, WhatMakesNoSenseIsRefused) {
  const auto counts = count_data(60);
  auto options = quick("poisson");
  auto negative = counts;
  negative.target(3) = -1;
  EXPECT_THROW(fit_with(negative, options, {}), DataError);
  EXPECT_THROW(fit_with(counts, quick("bernoulli-logit"), {}), InvalidArgument);
  options.method.noise = 0.1;
  EXPECT_THROW(fit_with(counts, options, {}), InvalidArgument);
  options = quick("poisson");
  options.train.train = "vecchia";
  EXPECT_THROW(fit_with(counts, options, {}), InvalidArgument);
}

TEST(LaplaceFit, IsPlannedAsItIsDone) {
  const auto counts = count_data(60);
  auto options = quick("poisson");
  options.train.steps = 2;
  const auto plan = plan_fit(counts, options);
  const auto done = fit_with(counts, options, {}).plan;
  EXPECT_EQ(plan.reason, done.reason);
  EXPECT_EQ(plan.train_rows, done.train_rows);
  EXPECT_EQ(plan.rows.size(), done.rows.size());
  auto negative = counts;
  negative.target(3) = -1;
  EXPECT_THROW(plan_fit(negative, options), DataError);
  options.method.solver = "kcg";
  EXPECT_THROW(plan_fit(counts, options), InvalidArgument);
}

TEST(LaplaceFit, MemoryCountsEveryClass) {
  const auto data = class_data(400, 8);
  const auto classes = find_classes(data);
  auto options = fixed("bernoulli-logit");
  const double dense = inference::exact_laplace_bytes(data.size(), classes.functions());
  options.method.memory =
      static_cast<std::uint64_t>(planning::base_bytes(data.size(), data.dimension()) + 0.8 * dense);
  EXPECT_NE(fit_with(data, options, classes).plan.system.solver, "cholesky");
  options.method.solver = "cholesky";
  EXPECT_THROW(fit_with(data, options, classes), DoesNotFit);
}

TEST(LaplaceFit, AClassWithOneMemberIsLearnedAndSaid) {
  auto data = class_data(60, 2, 0);
  data.target(0) = 7;
  const auto fit = fit_with(data, fixed("bernoulli-logit"), find_classes(data));
  ASSERT_EQ(fit.warnings.size(), 1u);
  EXPECT_NE(fit.warnings[0].find("'7'"), std::string::npos);
  EXPECT_TRUE(Predictor(fit.model, {}).predict(data.inputs).probabilities.allFinite());
}

}  // namespace laplace_fit_test
}  // namespace mercer::models
