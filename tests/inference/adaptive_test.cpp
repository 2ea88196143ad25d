#include "mercer/inference/adaptive.hpp"

#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::inference {
namespace adaptive_test {

using testing::small_gp;
using testing::SmallGp;

AdaptiveOptions options_for(const SmallGp& gp) {
  return {.speeds =
              nominal_speeds(gp.kernel_operator.kernel(), gp.kernel_operator.points().cols())};
}

struct Outcome {
  krylov::SolveResult result;
  Matrix x;
  int levels = 0;
  Index rank = 0;
  std::string name;
};

Outcome solve(const SmallGp& gp, const AdaptiveOptions& options,
              const krylov::SolverOptions& solver = {}, const Observer& observer = {}) {
  Adaptive adaptive({gp.kernel_operator, gp.noise}, options);
  Outcome out;
  out.x = Matrix::Zero(gp.y.rows(), 1);
  out.result =
      adaptive.solve(krylov::solver("cg"), gp.a, gp.y, out.x, solver, {.observer = observer});
  out.levels = adaptive.levels_built();
  out.rank = adaptive.report().rank;
  out.name = adaptive.report().name;
  return out;
}

TEST(Adaptive, AnEasySystemIsNotCharged) {
  const auto gp = small_gp({.num_points = 500, .noise = 10});
  const auto out = solve(gp, options_for(gp));
  EXPECT_TRUE(out.result.converged());
  EXPECT_EQ(out.levels, 0);
  EXPECT_EQ(out.name, "none");
}

TEST(Adaptive, AHardSystemGetsWhatItNeeds) {
  const auto gp = small_gp({.num_points = 700, .noise = 1e-5, .kernel = "matern32:iso"});
  const auto out = solve(gp, options_for(gp), {.max_iterations = 5000});
  Matrix plain = Matrix::Zero(700, 1);
  const auto cg = krylov::cg(gp.a, gp.y, plain, {.max_iterations = 5000});
  EXPECT_TRUE(out.result.converged());
  EXPECT_GE(out.levels, 1);
  EXPECT_TRUE(out.name == "hybrid" || out.name == "rpcholesky") << out.name;
  EXPECT_LT(5 * out.result.iterations, cg.iterations);
  EXPECT_LE((gp.a.matrix() * out.x - gp.y).norm(), 1.01e-6 * gp.y.norm());
  EXPECT_EQ(out.result.residuals.rows(), out.result.iterations);
}

TEST(Adaptive, TheLimitCountsAllLevels) {
  const auto gp = small_gp({.num_points = 700, .noise = 1e-5, .kernel = "matern32:iso"});
  const auto out = solve(gp, options_for(gp), {.tolerance = 1e-12, .max_iterations = 7});
  EXPECT_EQ(out.result.stop, StopReason::iteration_limit);
  EXPECT_LE(out.result.iterations, 7);
}

TEST(Adaptive, StopsWhenTheUserSays) {
  const auto gp = small_gp({.num_points = 700, .noise = 1e-5, .kernel = "matern32:iso"});
  int last = 0;
  const auto out = solve(gp, options_for(gp), {}, [&](const Iteration& it) {
    EXPECT_EQ(it.number, last + 1);  // counted over all levels
    last = it.number;
    return it.number == 8 ? Action::stop : Action::proceed;
  });
  EXPECT_EQ(out.result.stop, StopReason::interrupted);
  EXPECT_EQ(out.result.iterations, 8);
}

TEST(Adaptive, ManySolvesMakeItWorthwhileEarlier) {
  // Between the two: plain iterations for one solve, a preconditioner for a thousand.
  const auto gp = small_gp({.num_points = 500, .noise = 1.5});
  auto options = options_for(gp);
  EXPECT_EQ(solve(gp, options).levels, 0);
  options.expected_solves = 1000;
  EXPECT_GE(solve(gp, options).levels, 1);
}

TEST(Adaptive, SameBitsOnAnyNumberOfThreads) {
  const auto gp = small_gp({.num_points = 400, .noise = 1e-5, .kernel = "matern32:iso"});
  const int threads = num_threads();
  set_num_threads(1);
  const auto one = solve(gp, options_for(gp));
  set_num_threads(3);
  const auto three = solve(gp, options_for(gp));
  set_num_threads(threads);
  EXPECT_EQ(one.levels, three.levels);
  EXPECT_TRUE(one.x == three.x);
}

TEST(Adaptive, AMatrixOfFewDirectionsAndAToleranceOutOfReachEnds) {
  // K has rank 6: no larger preconditioner can be had, and 1e-16 cannot be reached.
  const auto gp = small_gp({.num_points = 300, .noise = 1e-12, .kernel = "poly:2"});
  const auto out = solve(gp, options_for(gp), {.tolerance = 1e-16, .max_iterations = 400});
  EXPECT_FALSE(out.result.converged());
  EXPECT_LE(out.levels, 8);
}

TEST(Adaptive, RanksDoubleUpToTheLargestAllowed) {
  EXPECT_EQ(adaptive_ranks(10000, 300), (std::vector<Index>{32, 64, 128, 256}));
  EXPECT_EQ(adaptive_ranks(10, 2000), std::vector<Index>{10});
  EXPECT_EQ(adaptive_ranks(10000, 20), std::vector<Index>{20});
}

TEST(Adaptive, PredictsTheIterationsOfALowRankPart) {
  // The rule is a rough one: within a factor of 2.5 is enough for the choice.
  for (const double lengthscale : {1.0, 2.0}) {
    const auto gp =
        small_gp({.num_points = 600, .num_inputs = 4, .noise = 1e-3, .lengthscale = lengthscale});
    for (const Index rank : {50, 100, 200}) {
      const auto built =
          preconditioners::make("rpcholesky", gp.kernel_operator, gp.noise, {.rank = rank});
      Matrix x = Matrix::Zero(600, 1);
      const auto cg = krylov::cg(gp.a, gp.y, x, {.max_iterations = 5000},
                                 {.preconditioner = built.preconditioner.get()});
      const double left = *built.report.trace_left, half = *built.report.trace_left_at_half;
      const double predicted = low_rank_iterations(left * 600, left / half, rank, gp.noise, 1e-6);
      EXPECT_GT(predicted, 0.4 * cg.iterations) << rank << " " << lengthscale;
      EXPECT_LT(predicted, 2.5 * cg.iterations) << rank << " " << lengthscale;
    }
  }
}

}  // namespace adaptive_test
}  // namespace mercer::inference
