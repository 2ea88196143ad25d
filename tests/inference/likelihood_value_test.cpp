#include "mercer/inference/exact/likelihood_value.hpp"

#include <gtest/gtest.h>

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

}  // namespace likelihood_value_test
}  // namespace mercer::inference
