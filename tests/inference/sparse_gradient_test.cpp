// Gradients of sparse evidences in the hyperparameters and in the base points, by differences.
#include "mercer/inference/sparse/sparse_gradient.hpp"

#include <gtest/gtest.h>

#include "tests/inference/sparse_problems.hpp"

namespace mercer::inference {
namespace sparse_gradient_test {

using mercer::testing::Rows;

// Fourth-order differences with a step of 3e-3 err by h^4/30 of the fifth derivative, 3e-12 of it,
// and by 1.5/h of the rounding of a value of some hundred: 1e-9.
constexpr double kStep = 3e-3, kAllowed = 1e-6;

void expect_gradient(Inference& method, const Problem& problem, double allowed = kAllowed) {
  const Vector theta = problem.log_parameters();
  const auto evidence = method.evaluate(problem, {});
  ASSERT_EQ(evidence.gradient.size(), theta.size());
  for (Index p = 0; p < theta.size(); ++p) {
    const double slope = testing::slope_of(
        [&](double by) {
          auto moved = problem;
          Vector there = theta;
          there(p) += by;
          moved.set_log_parameters(there);
          return method.evaluate(moved, {.gradient = false}).value;
        },
        kStep);
    EXPECT_NEAR(evidence.gradient(p), slope, allowed * (1 + std::abs(slope)))
        << problem.parameter_names()[static_cast<std::size_t>(p)];
  }
}

class SparseSlope : public ::testing::TestWithParam<std::string> {
 protected:
  SparseSetup setup(const Matrix& base) const {
    const auto& can = methods().find(GetParam()).abilities;
    SparseSetup out;
    if (can.base && GetParam() != "subset")
      out.points = base;
    else if (GetParam() == "subset")
      out.rank = base.rows();
    if (can.blocks) out.blocks = 4;
    return out;
  }
};

TEST_P(SparseSlope, IsThatOfTheValue) {
  const Matrix base = testing::sparse_points(12, 2, 8);
  for (const char* kernel : {"matern52:ard", "rbf:iso + 0.4*linear:iso", "matern32:iso*rbf:ard"})
    for (const auto mean : {MeanKind::zero, MeanKind::linear})
      for (const auto kind : {Rows::plain, Rows::row_noise, Rows::replicates}) {
        const auto rows = testing::sparse_rows(50, 2, kind);
        const auto problem = testing::sparse_problem(kernel, 2, mean);
        const auto method = make(GetParam(), problem, {.rows = rows, .sparse = setup(base)});
        expect_gradient(*method, problem);
      }
}

// Weights on kernel values have 1e12 times the rounding of those on whitened ones at most: 2e-4.
TEST_P(SparseSlope, IsThatOfTheValueWhenBasePointsAreNearlyDependent) {
  const auto rows = testing::sparse_rows(50);
  const Matrix base = testing::sparse_points(15, 2, 8);
  const auto problem = testing::with_condition(testing::sparse_problem("rbf:iso"), base, 1e12);
  const auto method = make(GetParam(), problem, {.rows = rows, .sparse = setup(base)});
  expect_gradient(*method, problem, 1e-3);
}
INSTANTIATE_TEST_SUITE_P(Registry, SparseSlope,
                         ::testing::ValuesIn(testing::approximations_of_regression()),
                         [](const auto& test) { return test.param; });

void expect_base_gradient(const std::string& name, const Problem& problem, const Observations& rows,
                          const Matrix& base, double allowed) {
  const auto method = make(name, problem, {.rows = rows, .sparse = {.points = base}});
  Matrix gradient;
  const auto evidence = method->evaluate_with_base(problem, {}, gradient);
  EXPECT_EQ(evidence.value, method->evaluate(problem, {}).value);
  EXPECT_EQ(evidence.gradient, method->evaluate(problem, {}).gradient);
  ASSERT_EQ(gradient.rows(), base.rows());
  ASSERT_EQ(gradient.cols(), base.cols());
  for (Index j = 0; j < base.rows(); ++j)
    for (Index c = 0; c < base.cols(); ++c) {
      const double slope = testing::slope_of(
          [&](double by) {
            Matrix moved = base;
            moved(j, c) += by;
            method->use_base(moved);
            return method->evaluate(problem, {.gradient = false}).value;
          },
          kStep);
      EXPECT_NEAR(gradient(j, c), slope, allowed * (1 + std::abs(slope))) << j << ", " << c;
    }
}

TEST(SparseBase, GradientInTheBasePointsIsThatOfTheValue) {
  const Matrix base = testing::base_on_a_grid();
  for (const auto& method : methods()) {
    if (!method.abilities.optimizes_base) continue;
    for (const char* kernel : {"rbf:ard", "matern52:iso + 0.4*linear:iso", "matern32:iso*rbf:iso"})
      for (const auto mean : {MeanKind::zero, MeanKind::constant})
        expect_base_gradient(std::string(method.name), testing::sparse_problem(kernel, 2, mean),
                             testing::sparse_rows(40, 2, Rows::row_noise), base, 2e-6);
  }
}

// Two base points so close that S_bb takes jitter, which is a share of the prior variance: its
// derivative is counted.
TEST(SparseBase, JitterIsPartOfTheGradient) {
  Matrix base = testing::sparse_points(6, 2, 8);
  base.row(5) = base.row(4);
  base(5, 0) += 1e-9;
  const auto rows = testing::sparse_rows(40);
  const auto problem = testing::sparse_problem("rbf:iso");
  ASSERT_GT(BaseFactor(problem.kernel, base).jitter(), 0);
  const auto method = make("vfe", problem, {.rows = rows, .sparse = {.points = base}});
  const auto posterior = method->posterior(problem, {});
  EXPECT_GT(posterior.jitter, 0);
  EXPECT_EQ(posterior.sparse->jitter, posterior.jitter);
  // The pair's second direction is rounding of 1e-16 over a pivot of 1e-14.
  expect_gradient(*method, problem, 5e-2);
}

}  // namespace sparse_gradient_test
}  // namespace mercer::inference
