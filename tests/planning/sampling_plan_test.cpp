#include "mercer/planning/sampling_plan.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::planning {
namespace sampling_plan_test {

Plan plan_of(Index n, const training::SampleOptions& sample, const MethodOptions& method = {}) {
  inference::Observations rows{Matrix(n, 3), Matrix::Zero(n, 1)};
  Rng(2, "plan").fill_normal(rows.x);
  return plan_sampling({kernels::Kernel::parse("rbf:iso", 3), 0.1}, 0.1, rows, method, {}, sample);
}

TEST(SamplingPlan, FewRowsGoByFactorisationsAndManyBySolves) {
  const auto few = plan_of(300, {}), many = plan_of(40000, {});
  EXPECT_FALSE(few.train_by_solves);
  EXPECT_TRUE(many.train_by_solves);
  EXPECT_NE(few.train_method, many.train_method);
}

// Every chain has a preconditioner and solutions of its own, for as long as it runs.
TEST(SamplingPlan, MemoryGrowsWithTheChainsThatGoBySolves) {
  training::SampleOptions sample;
  sample.chains = 2;
  const auto two = plan_of(40000, sample);
  sample.chains = 8;
  const auto eight = plan_of(40000, sample);
  ASSERT_EQ(two.rows.front().stage, "train");
  EXPECT_DOUBLE_EQ(eight.rows.front().bytes, 4 * two.rows.front().bytes);
  MethodOptions method;
  method.memory = static_cast<std::uint64_t>(two.base_bytes + 2 * two.rows.front().bytes);
  EXPECT_THROW(plan_of(40000, sample, method), DoesNotFit);
}

}  // namespace sampling_plan_test
}  // namespace mercer::planning
