#include "mercer/models/hyperparameters.hpp"

#include <gtest/gtest.h>

namespace mercer::models {
namespace {

TEST(Hyperparameters, AreGivenInBothUnits) {
  auto kernel = kernels::Kernel::parse("rbf + periodic", 2);
  kernel.set_all_variances(0.5);
  kernel.set_all_lengthscales(2);
  const inference::Problem problem{kernel, 0.25, inference::MeanKind::zero, {}};
  const data::Scaling scaling{Vector::Zero(2), Eigen::Vector2d(10, 100), 3, 4};

  const auto scaled = standardised(problem);
  EXPECT_DOUBLE_EQ(scaled.signal_variance, 1);  // summed over the two terms
  EXPECT_DOUBLE_EQ(scaled.noise_variance.value(), 0.25);
  ASSERT_EQ(scaled.leaves.size(), 2U);
  EXPECT_EQ(scaled.lengthscales(), (std::vector<double>{2, 2}));

  const auto raw = original(problem, scaling);
  EXPECT_DOUBLE_EQ(raw.signal_variance, 16);
  EXPECT_DOUBLE_EQ(raw.noise_variance.value(), 4);
  EXPECT_EQ(raw.lengthscales(), (std::vector<double>{20, 200}));
  // A periodic lengthscale has no unit; its period has that of the input.
  EXPECT_EQ(raw.leaves[1].lengthscales, scaled.leaves[1].lengthscales);
  EXPECT_DOUBLE_EQ(raw.leaves[1].periods[1], 100 * scaled.leaves[1].periods[1]);
}

}  // namespace
}  // namespace mercer::models
