#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::planning {
namespace approximation_plan_test {

inference::Observations some_rows(Index n) {
  inference::Observations rows{Matrix(n, 3), Matrix::Zero(n, 1)};
  Rng(2, "plan").fill_normal(rows.x);
  return rows;
}

Plan plan_of(Index n, const std::string& name, MethodOptions method = {}) {
  ApproximationOptions approximation;
  approximation.method = name;
  return plan_fit({kernels::Kernel::parse("rbf", 3), 0.1}, 0.1, some_rows(n), method, {},
                  approximation);
}

TEST(ApproximationPlan, AnExactPlanListsEveryApproximationAndTakesNone) {
  const auto plan = plan_fit({kernels::Kernel::parse("rbf", 3), 0.1}, 0.1, some_rows(6000), {}, {});
  EXPECT_FALSE(plan.approximate);
  Index listed = 0;
  for (const auto& row : plan.rows) {
    if (row.stage != "instead") continue;
    ++listed;
    EXPECT_FALSE(row.chosen);
    EXPECT_EQ(row.note.substr(0, 11), "approximate");
    EXPECT_GT(row.bytes, 0);
    EXPECT_GT(row.seconds, 0);
  }
  EXPECT_EQ(listed, static_cast<Index>(approximation_names().size()));
}

TEST(ApproximationPlan, OneThatIsAskedForIsPlanned) {
  for (const auto& name : approximation_names()) {
    MethodOptions method;
    if (inference::methods().find(name).abilities.base) method.preconditioning.rank = 200;
    const auto plan = plan_of(5000, name, method);
    EXPECT_TRUE(plan.approximate);
    EXPECT_EQ(plan.inference, name);
    EXPECT_EQ(plan.train_rows, 5000);
    EXPECT_EQ(plan.start_rows, 1000);
    ASSERT_EQ(plan.rows.size(), 2u);
    EXPECT_EQ(plan.rows[0].stage, "train");
    EXPECT_TRUE(plan.rows[0].chosen);
    EXPECT_EQ(plan.rows[1].stage, "solve");
    EXPECT_NE(plan.reason.find(name), std::string::npos);
  }
}

// The plan of many rows has levels, says so, and counts evaluations on them by their rows: 40 on
// all, 15 on a quarter and on a sixteenth, and a Hessian of the latter. Starts on few rows are
// seconds beside that.
TEST(ApproximationPlan, ManyRowsAreLearnedInLevels) {
  Index in_levels = 0;
  for (const auto& name : approximation_names()) {
    const auto plan = plan_of(80000, name);
    const auto gradient = plan.rows[1].seconds;  // the posterior is one evaluation
    if (plan.solve_levels.empty()) continue;
    ++in_levels;
    EXPECT_EQ(plan.solve_levels, (std::vector<Index>{5000, 20000})) << name;
    EXPECT_NE(plan.reason.find("5,000, 20,000 and all 80,000 rows"), std::string::npos)
        << plan.reason;
    EXPECT_GT(plan.rows[0].seconds, 40 * gradient) << name;
    EXPECT_LT(plan.rows[0].seconds, 50 * gradient + 60) << name;
    EXPECT_TRUE(plan_of(10000, name).solve_levels.empty()) << name;
  }
  EXPECT_EQ(in_levels, static_cast<Index>(approximation_names().size()) - 1);
}

TEST(ApproximationPlan, WhatDoesNotFitIsRefusedWithWhatWould) {
  MethodOptions method;
  method.preconditioning.rank = 3000;
  method.memory = 100 << 20;
  try {
    plan_of(5000, approximation_names().front(), method);
    FAIL();
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("`memory="), std::string::npos) << error.what();
  }
}

TEST(ApproximationPlan, OtherLikelihoodsListWhatTakesThem) {
  const inference::Problem problem(kernels::Kernel::parse("rbf", 3),
                                   likelihoods::make("bernoulli-logit"));
  const auto rows = some_rows(300);
  const auto plan = plan_fit(problem, 4.0, rows, {}, {});
  for (const auto& row : plan.rows)
    if (row.stage == "instead") {
      const auto name = row.method.substr(0, row.method.find(','));
      EXPECT_TRUE(inference::methods().find(name).refusal(problem, rows).empty()) << name;
    }
}

}  // namespace approximation_plan_test
}  // namespace mercer::planning
