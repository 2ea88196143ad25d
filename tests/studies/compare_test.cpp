#include "mercer/studies/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/models/solve.hpp"
#include "mercer/operators/registry.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::studies {
namespace compare_test {

data::Dataset small_data(Index n = 150) {
  const auto simulated = data::friedman(n, {.dimension = 5, .noise_sd = 0.5, .seed = 3});
  return data::make_dataset(simulated.inputs, simulated.target, simulated.names);
}

CompareOptions small_options() {
  CompareOptions options;
  options.method.kernel = "rbf:iso";
  options.lengthscales = {0.5, 3};
  options.noises = {1e-4, 1e-1};
  options.method.max_iterations = 5000;
  return options;
}

TEST(Compare, KernelConjugateGradientsStandBesideTheOthers) {
  auto options = small_options();
  options.preconditioners = {"none"};
  options.solvers = {"auto", "kcg"};
  const auto result = compare(small_data(), options);
  EXPECT_EQ(result.labels, (std::vector<std::string>{"cg", "kcg"}));
  for (const auto& run : result.runs) {
    EXPECT_TRUE(run.converged()) << run.label();
    EXPECT_LE(run.relative_residual, options.method.tolerance) << run.label();
    EXPECT_GT(run.iterations, 0) << run.label();
  }
}

TEST(Compare, RunsEveryMethodInEveryCell) {
  // Two inputs: above four, ski takes the nearest node of a coarse grid and may well not converge.
  const auto field = data::scattered_field(150, 0.05, 3);
  const auto result = compare(data::make_dataset(field.inputs, field.target), small_options());
  EXPECT_EQ(result.labels.front(), "cg");
  EXPECT_EQ(result.labels.size(), preconditioners::preconditioners().size() + 1);  // and auto
  EXPECT_EQ(result.runs.size(), 4 * result.labels.size());
  EXPECT_EQ(result.winners.size(), 4u);
  for (const auto& run : result.runs) {
    EXPECT_TRUE(run.converged()) << run.label() << " " << run.skipped << " at " << run.lengthscale
                                 << ", " << run.noise;
    EXPECT_LE(run.relative_residual, 1.01e-6) << run.label();
    EXPECT_GT(run.iterations, 0);
  }
  for (const auto& winner : result.winners) EXPECT_FALSE(winner.by_seconds.empty());
}

TEST(Compare, RunsOnAnOperatorAddedAtRunTime) {
  const auto data = small_data();
  CompareOptions options = small_options();
  options.preconditioners = {"none"};
  const auto run = [&](const std::string& op) {
    options.method.op = op;
    return compare(data, options);
  };
  operators::OperatorInfo dummy = operators::default_operator();
  dummy.name = "dummy";
  const auto registered = operators::operators().add(dummy);

  const auto wrapped = run("dummy"), plain = run(std::string(operators::default_operator().name));
  EXPECT_EQ(wrapped.op, "dummy");
  ASSERT_EQ(wrapped.runs.size(), plain.runs.size());
  for (std::size_t i = 0; i < plain.runs.size(); ++i)
    EXPECT_EQ(wrapped.runs[i].relative_residual, plain.runs[i].relative_residual);
}

void expect_the_system_of_solve_on(const std::string& op, const data::Dataset& data,
                                   const std::string& solver, const std::string& preconditioner,
                                   const std::string& precision) {
  CompareOptions options = small_options();
  options.lengthscales = {0.7};
  options.noises = {0.02};
  options.method.op = op;
  options.method.precision = precision;
  options.solvers = {solver};
  options.preconditioners = {preconditioner};
  const auto compared = compare(data, options).runs.back();

  models::FitOptions alone;
  alone.method = options.method;
  alone.method.solver = solver;
  alone.method.preconditioner = preconditioner;
  alone.method.lengthscale = {0.7};
  alone.method.signal_variance = 1.0;
  alone.method.noise = 0.02;
  const auto solved = models::solve(data, alone);

  SCOPED_TRACE(op + " " + solver + " " + preconditioner + " " + precision);
  EXPECT_TRUE(compared.converged());
  EXPECT_EQ(compared.iterations, solved.report.iterations);
  EXPECT_EQ(compared.inner_iterations, solved.report.inner_iterations);
  EXPECT_EQ(compared.matvecs, solved.report.matvecs);
  EXPECT_EQ(compared.relative_residual, solved.report.relative_residual);  // to the last bit
  EXPECT_EQ(compared.built, solved.preconditioner.name);
  EXPECT_EQ(compared.rank, solved.preconditioner.rank);
}

// One cell of one method by compare, and the same system by `solve`, on every operator.
void expect_the_system_of_solve(const data::Dataset& data, const std::string& solver,
                                const std::string& preconditioner, const std::string& precision) {
  for (const auto& op : operators::operators().names())
    expect_the_system_of_solve_on(op, data, solver, preconditioner, precision);
}

TEST(Compare, RunsTheSystemThatSolveRuns) {
  const auto data = small_data(300);
  for (const std::string precision : {"double", "mixed"}) {
    expect_the_system_of_solve(data, "cg", "none", precision);
    expect_the_system_of_solve(data, "cg", "auto", precision);
    expect_the_system_of_solve(data, "cg", "hybrid", precision);
    expect_the_system_of_solve(data, "fcg", "regularized", precision);
  }
  expect_the_system_of_solve(data, "kcg", "none", "double");
}

TEST(Compare, RowsMayHaveNoiseOfTheirOwn) {
  auto data = small_data(200);
  data.noise.count = Vector::Constant(data.size(), 1.0);
  data.noise.count.head(50).setConstant(8.0);
  data.noise.variance = Vector::Zero(data.size());
  data.noise.variance.tail(50).setConstant(2.0);
  for (const char* preconditioner : {"none", "auto", "hybrid", "fitc"})
    expect_the_system_of_solve(data, "cg", preconditioner, "double");

  // More noise: fewer iterations than with the learned noise alone.
  auto options = small_options();
  options.lengthscales = {0.7};
  options.noises = {1e-4};
  options.solvers = {"auto", "cholesky", "kcg"};
  options.preconditioners = {"none"};
  auto noisy = data;
  noisy.noise.count.resize(0);
  noisy.noise.variance.setConstant(5.0);
  const auto with = compare(noisy, options), without = compare(small_data(200), options);
  EXPECT_LT(with.runs[0].iterations, without.runs[0].iterations);
  EXPECT_TRUE(with.runs[1].converged());
  // kcg needs the same noise in all rows: it is left out, with the reason.
  const auto unequal = compare(data, options);
  EXPECT_NE(unequal.runs[2].skipped.find("same noise"), std::string::npos)
      << unequal.runs[2].skipped;
}

TEST(Compare, ImprovementIsTheLogarithmAgainstPlainCg) {
  auto options = small_options();
  options.preconditioners = {"pivoted-cholesky"};
  options.method.preconditioning.rank = 40;
  options.solvers = {"auto", "gmres", "cholesky"};
  const auto result = compare(small_data(), options);
  EXPECT_EQ(result.labels, (std::vector<std::string>{"cg", "pivoted-cholesky",
                                                     "gmres + pivoted-cholesky", "cholesky"}));
  for (std::size_t i = 0; i < result.runs.size(); i += 4) {
    const auto& plain = result.runs[i];
    const auto& run = result.runs[i + 1];
    EXPECT_EQ(plain.improvement, 0.0);
    ASSERT_TRUE(run.improvement);
    EXPECT_DOUBLE_EQ(*run.improvement, std::log10(double(run.iterations) / plain.iterations));
    EXPECT_EQ(run.rank, 40);
    EXPECT_TRUE(result.runs[i + 3].converged());
    EXPECT_FALSE(result.runs[i + 3].improvement);
  }
}

TEST(Compare, LimitsStopARunAndAreSaid) {
  auto options = small_options();
  options.preconditioners = {"none"};
  options.method.max_iterations = 3;
  for (const auto& run : compare(small_data(), options).runs) {
    if (run.noise > 1e-2) continue;
    EXPECT_EQ(run.stop, StopReason::iteration_limit);
    EXPECT_FALSE(run.improvement);
  }
  options.method.max_iterations = 5000;
  options.cell_seconds = 1e-9;
  const auto timed = compare(small_data(), options);
  EXPECT_TRUE(timed.runs.front().timed_out);
  EXPECT_EQ(timed.runs.front().iterations, 1);
}

TEST(Compare, SeedRuleStopsByTheRootMeanSquare) {
  auto options = small_options();
  options.preconditioners = {"none"};
  options.rms_tolerance = 1e-2;
  for (const auto& run : compare(small_data(), options).runs) {
    // |y| = sqrt(N) on standardised data: both rules are the same here.
    EXPECT_LE(run.relative_residual, 1.01e-2);
    EXPECT_GT(run.relative_residual, 1e-5);
  }
}

TEST(Compare, WhatDoesNotFitIsSkippedWithTheReason) {
  auto options = small_options();
  options.preconditioners = {"ssor"};
  options.method.op = "tiled";
  // The least that a comparison needs is refused as a whole, and says how much that is.
  options.method.memory = 1;
  EXPECT_THROW(compare(small_data(), options), DoesNotFit);
  // A little more than plain CG needs: not enough for a dense triangle.
  const Index n = 150, d = 5;
  options.method.memory =
      static_cast<std::uint64_t>(planning::base_bytes(n, d) + 2 * operators::tiled_bytes(n, d, 1) +
                                 krylov::solver("cg").bytes(n, 1, true) + 1000);
  const auto result = compare(small_data(), options);
  EXPECT_NE(result.runs[1].skipped.find("memory"), std::string::npos) << result.runs[1].skipped;
  EXPECT_TRUE(result.runs[0].converged());
}

TEST(Compare, OptionsThatNothingTakesAreRefused) {
  auto options = small_options();
  options.preconditioners = {"vecchia"};
  options.method.preconditioning.rank = 5;
  EXPECT_THROW(check(options), InvalidArgument);
  options.preconditioners = {"vecchia", "auto"};
  EXPECT_NO_THROW(check(options));
}

TEST(Compare, AnInterruptedComparisonKeepsWhatIsDone) {
  auto options = small_options();
  options.preconditioners = {"none", "jacobi"};
  int cells = 0;
  const auto result = compare(small_data(), options, [&](const Progress& p) {
    if (!p.between_tiles && p.detail.find("iteration") == std::string::npos) ++cells;
    return cells > 3 ? Action::stop : Action::proceed;
  });
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.runs.size(), 3u);
}

TEST(Compare, AKernelWithoutLengthscaleHasOneColumn) {
  auto options = small_options();
  options.method.kernel = "linear:iso";
  options.preconditioners = {"none"};
  const auto result = compare(small_data(), options);
  EXPECT_EQ(result.lengthscales.size(), 1u);
  EXPECT_FALSE(result.note.empty());
}

TEST(Compare, RefusesWhatMakesNoSense) {
  const auto data = small_data(20);
  const auto refuses = [&](auto change) {
    auto options = small_options();
    change(options);
    EXPECT_THROW(compare(data, options), InvalidArgument);
  };
  refuses([](auto& o) { o.lengthscales = {-1}; });
  refuses([](auto& o) { o.noises = {}; });
  refuses([](auto& o) { o.noises = {0}; });
  refuses([](auto& o) { o.solvers = {"magic"}; });
  refuses([](auto& o) { o.preconditioners = {"magic"}; });
  refuses([](auto& o) { o.cell_seconds = 0; });
  refuses([](auto& o) { o.rms_tolerance = -1; });
}

}  // namespace compare_test
}  // namespace mercer::studies
