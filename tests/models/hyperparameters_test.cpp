#include "mercer/models/hyperparameters.hpp"

#include <gtest/gtest.h>

#include "mercer/models/input_names.hpp"

namespace mercer::models {
namespace hyperparameters_test {

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

TEST(Hyperparameters, OfALeafThatNamesItsInputsAreThoseOfItsColumns) {
  auto kernel = kernels::Kernel::parse("rbf(2) * periodic(0,2)", 3);
  kernel.set_all_lengthscales(2);
  const inference::Problem problem{kernel, 0.25, inference::MeanKind::zero};
  const auto raw = original(problem, {Vector::Zero(3), Eigen::Vector3d(10, 100, 1000), 3, 4});
  EXPECT_EQ(raw.leaves[0].inputs, (std::vector<Index>{2}));
  EXPECT_EQ(raw.leaves[0].lengthscales, (std::vector<double>{2000}));
  EXPECT_EQ(raw.leaves[1].inputs, (std::vector<Index>{0, 2}));
  EXPECT_EQ(raw.leaves[1].periods, (std::vector<double>{10, 1000}));
}

TEST(InputNames, AreColumnsLevelsAndWholeCategories) {
  data::Schema schema;
  schema.inputs = {{"age", false, {}}, {"colour", true, {"green", "red"}}, {"t", false, {}}};
  const auto names = input_names(schema);
  EXPECT_EQ(names.num_inputs, 4);
  const auto inputs = [&](const char* text) {
    return kernels::Kernel::parse(text, names).root().children[0].leaf.inputs;
  };
  EXPECT_EQ(inputs("rbf(t,age)"), (std::vector<Index>{0, 3}));
  EXPECT_EQ(inputs("rbf(colour)"), (std::vector<Index>{1, 2}));
  EXPECT_EQ(inputs("rbf(colour=red)"), (std::vector<Index>{2}));
}

}  // namespace hyperparameters_test
}  // namespace mercer::models
