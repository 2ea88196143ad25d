#include "mercer/inference/mean_function.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"

namespace mercer::inference {
namespace mean_function_test {

Matrix normal(Index n, Index d) {
  Matrix x(n, d);
  Rng(3, "mean-function").fill_normal(x);
  return x;
}

TEST(MeanFunction, IndependentInputsAllStay) {
  EXPECT_TRUE(dependent_inputs(MeanKind::linear, normal(20, 5)).empty());
  EXPECT_TRUE(dependent_inputs(MeanKind::constant, Matrix::Ones(3, 2)).empty());
  EXPECT_EQ(mean_basis(MeanKind::linear, normal(20, 5)).cols(), 6);
}

TEST(MeanFunction, LaterDependentInputsAreFoundInAnyUnit) {
  Matrix x = normal(20, 6);
  x.col(1).setConstant(7);                             // the constant again
  x.col(3) = 1e200 * (x.col(0).array() - 2).matrix();  // another unit
  x.col(5) = 1e-200 * (x.col(2) + x.col(4));           // a combination
  const auto left_out = dependent_inputs(MeanKind::linear, x);
  EXPECT_EQ(left_out, (std::vector<Index>{1, 3, 5}));
  const Matrix basis = mean_basis(MeanKind::linear, x, left_out);
  ASSERT_EQ(basis.cols(), 4);
  EXPECT_EQ(basis.col(0), Vector::Ones(20));
  EXPECT_EQ(basis.col(1), x.col(0));
  EXPECT_EQ(basis.col(3), x.col(4));
}

TEST(MeanFunction, ATrendThroughAllPointsIsRefused) {
  EXPECT_THROW(dependent_inputs(MeanKind::linear, normal(5, 9)), DataError);
  EXPECT_THROW(dependent_inputs(MeanKind::linear, normal(2, 1)), DataError);
  EXPECT_TRUE(dependent_inputs(MeanKind::linear, normal(3, 1)).empty());
}

// The evidence depends on what the basis spans: which of two equal inputs stays does not matter,
// and neither does its unit.
TEST(MeanFunction, EvidenceKnowsOnlyTheSpan) {
  Matrix x = normal(30, 3);
  x.col(2) = 1e5 * x.col(0).array() + 3;
  const Vector y = x.col(0) + x.col(1).cwiseAbs2();
  Problem problem{kernels::Kernel::parse("rbf:iso", 3), 0.1, MeanKind::linear, {2}};
  const double first = exact_evidence(problem, {x, y}, false).value;
  problem.trend_left_out = {0};
  // Offset 3 against 1e5: no digits are lost beyond the condition of H, about 1e3.
  EXPECT_NEAR(exact_evidence(problem, {x, y}, false).value, first, 1e-9);
}

}  // namespace mean_function_test
}  // namespace mercer::inference
