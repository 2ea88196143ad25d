#include "mercer/inference/exact/likelihood_value.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::inference {
namespace likelihood_value_test {

TEST(LikelihoodValue, TheIntervalIsStudentsOfTheProbesWithWhatWasNotSolved) {
  LogDeterminant log_det;
  log_det.value = 10;
  log_det.probe_error = 2;
  log_det.solver_error = 0.5;
  const auto exactly_solved = lanczos_likelihood(-3, log_det, 10);
  EXPECT_TRUE(exactly_solved.known);
  EXPECT_EQ(exactly_solved.method, "lanczos");
  EXPECT_DOUBLE_EQ(exactly_solved.value, -8);
  EXPECT_DOUBLE_EQ(exactly_solved.probe_error, 1);
  EXPECT_DOUBLE_EQ(exactly_solved.solver_error, 0.25);
  // 2.262157 is the upper 2.5 % point of Student's t with 9 degrees of freedom, from tables.
  EXPECT_NEAR(exactly_solved.high, -8 + 2.262157 + 0.25, 1e-6);
  EXPECT_NEAR(exactly_solved.low, -8 - 2.262157 - 0.25, 1e-6);
  const auto loosely_solved = lanczos_likelihood(-3, log_det, 10, 1.5);
  EXPECT_DOUBLE_EQ(loosely_solved.solver_error, 1);
  EXPECT_NEAR(loosely_solved.high - exactly_solved.high, 0.75, 1e-12);
}

// Without a gradient a method by solves has a value: within six of its standard errors of the exact
// one (a false alarm in 10^8 runs of a normal error; of ten probes by Student's t in ten thousand),
// and, with the same probes every time, the same at the same place and nearly the same error beside
// it.
TEST(LikelihoodValue, BySolvesItIsThatOfTheFactorisationWithinItsError) {
  const Index n = 400;
  Observations rows{Matrix(n, 2), Matrix(n, 1), Vector::Zero(1)};
  Rng rng(3, "value");
  rng.fill_normal(rows.x);
  for (Index i = 0; i < n; ++i)
    rows.y(i, 0) = std::sin(2 * rows.x(i, 0)) + rows.x(i, 1) + 0.3 * rng.normal();
  Problem problem{kernels::Kernel::parse("matern32", 2), likelihoods::make("gaussian")};
  const InferenceSetup setup{
      .rows = rows, .system = {.solver = "cg", .preconditioner = "auto"}, .seed = 7};
  const auto exact =
      make(evidence_method(problem, EvidenceBy::factorisation), problem, {.rows = rows});
  const auto solves = make(evidence_method(problem, EvidenceBy::solves), problem, setup);
  const Ask ask{.gradient = false, .tolerance = 1e-6};
  const Vector start = problem.log_parameters();
  double first = 0;
  for (const double by : {0.0, 0.02, -0.3}) {
    problem.set_log_parameters(start + Vector::Constant(start.size(), by));
    const auto value = solves->evaluate(problem, ask);
    const double error = value.value - exact->evaluate(problem, {.gradient = false}).value;
    EXPECT_GT(value.value_error, 0);
    EXPECT_LT(value.value_error, 5);
    EXPECT_LE(std::abs(error), 6 * value.value_error) << by;
    EXPECT_EQ(value.value, solves->evaluate(problem, ask).value);
    EXPECT_EQ(value.gradient.size(), 0);
    if (by == 0) first = error;
    if (by == 0.02) {
      EXPECT_LE(std::abs(error - first), 0.5 * value.value_error);
    }
  }
}

}  // namespace likelihood_value_test
}  // namespace mercer::inference
