#include "mercer/core/history.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"

namespace mercer {
namespace history_test {

TEST(History, KeepsRowsInOrder) {
  History history(2);
  history.append(Eigen::Vector2d(1.0, 0.5));
  history.append(Eigen::Vector2d(0.1, 0.2));

  EXPECT_EQ(history.rows(), 2);
  EXPECT_EQ(history.columns(), 2);
  EXPECT_EQ(history(0, 1), 0.5);
  EXPECT_EQ(history(1, 0), 0.1);
  EXPECT_EQ(history.worst(0), 1.0);
  EXPECT_EQ(history.worst(1), 0.2);
}

TEST(History, RefusesARowOfAnotherLength) {
  History history(2);
  EXPECT_THROW(history.append(Eigen::Vector3d::Zero()), DimensionMismatch);
  EXPECT_EQ(history.rows(), 0);
}

TEST(StopReasonText, IsWhatTheJsonSays) {
  EXPECT_EQ(to_string(StopReason::converged), "converged");
  EXPECT_EQ(to_string(StopReason::iteration_limit), "iteration_limit");
  EXPECT_EQ(to_string(StopReason::breakdown), "breakdown");
  EXPECT_EQ(to_string(StopReason::stagnation), "stagnation");
  EXPECT_EQ(to_string(StopReason::interrupted), "interrupted");
}

}  // namespace history_test
}  // namespace mercer
