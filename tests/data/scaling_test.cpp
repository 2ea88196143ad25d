#include "mercer/data/scaling.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "mercer/core/rng.hpp"
#include "mercer/data/data_json.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace scaling_test {

using testing::message_of;

TEST(Scaling, PopulationMomentsOfAKnownColumn) {
  const Matrix x{{2}, {4}, {4}, {4}, {5}, {5}, {7}, {9}};  // mean 5, population variance 4
  const auto scaling = fit_scaling(x, x.col(0) * -3.0);
  EXPECT_EQ(scaling.input_mean[0], 5);
  EXPECT_EQ(scaling.input_sd[0], 2);
  EXPECT_EQ(scaling.target_mean, -15);
  EXPECT_EQ(scaling.target_sd, 6);
  EXPECT_EQ(scaling.unscale_target(2.0), -3);
  EXPECT_EQ(scaling.unscale_width(0.5), 3);
}

TEST(Scaling, ScaledColumnsHaveMeanZeroAndDeviationOneAndComeBack) {
  Matrix x(500, 3);
  Rng(1).fill_normal(x);
  x.col(1) = x.col(1).array() * 1e-3 + 7e5;
  Vector y = x.col(0) * 40;
  const auto scaling = fit_scaling(x, y);
  Matrix z = x;
  scaling.scale_inputs(z);
  for (Index j = 0; j < 3; ++j) {
    // 7e5 / 1e-3 is 7e8: the offset leaves about 16 - 9 digits of the deviations.
    EXPECT_NEAR(z.col(j).mean(), 0, 1e-7);
    EXPECT_NEAR(std::sqrt(z.col(j).squaredNorm() / 500), 1, 1e-7);
  }
  scaling.unscale_inputs(z);
  EXPECT_LT((z - x).cwiseAbs().maxCoeff(), 1e-9);  // a few roundings at 7e5
  Vector t = y;
  scaling.scale_target(t);
  EXPECT_NEAR(t.mean(), 0, 1e-14);
  scaling.unscale_target(t);
  EXPECT_LT((t - y).cwiseAbs().maxCoeff(), 1e-13);  // a rounding or two at 100
}

TEST(Scaling, HugeTinyAndFarAwayValues) {
  for (const double unit : {1e-320, 1e-300, 1e-150, 1e-100, 1.0, 1e100, 1e150, 1e299}) {
    const Matrix x{{unit}, {2 * unit}, {3 * unit}, {4 * unit}};
    const auto scaling = fit_scaling(x, x.col(0));
    // Denormals carry a dozen bits only; elsewhere a few roundings.
    const double tolerance = unit < 1e-308 ? 1e-2 : 1e-14;
    EXPECT_NEAR(scaling.input_mean[0] / unit, 2.5, 2.5 * tolerance) << unit;
    EXPECT_NEAR(scaling.input_sd[0] / unit, std::sqrt(1.25), 2 * tolerance) << unit;
    Matrix z = x;
    scaling.scale_inputs(z);
    EXPECT_NEAR(z(3, 0), 1.5 / std::sqrt(1.25), 2 * tolerance) << unit;
  }
  // 1e9 + {0, 1, 2}: a one-pass variance would be rounding noise.
  const auto far = fit_scaling(Matrix{{1e9}, {1e9 + 1}, {1e9 + 2}}, Vector{{0, 1, 2}});
  EXPECT_NEAR(far.input_sd[0], std::sqrt(2.0 / 3.0), 1e-15);
}

TEST(Scaling, AConstantColumnScalesToZero) {
  const auto scaling = fit_scaling(Matrix{{0.1, 1}, {0.1, 2}, {0.1, 4}}, Vector{{1, 2, 3}});
  EXPECT_EQ(scaling.input_sd[0], 1);
  EXPECT_EQ(scaling.input_mean[0], 0.1);
}

TEST(Scaling, IdentityChangesNothing) {
  Matrix x{{1.1, 2.2}};
  Scaling::identity(2).scale_inputs(x);
  EXPECT_EQ(x, (Matrix{{1.1, 2.2}}));
  EXPECT_EQ(Scaling::identity(2).unscale_target(3.3), 3.3);
}

TEST(Scaling, SizesMustAgree) {
  Matrix x = Matrix::Ones(3, 2);
  message_of<DimensionMismatch>([&] { Scaling::identity(3).scale_inputs(x); });
  message_of<DimensionMismatch>([&] { Scaling::identity(1).unscale_inputs(x); });
  message_of<DimensionMismatch>([&] { fit_scaling(x, Vector::Ones(2)); });
  message_of<InvalidArgument>([&] { fit_scaling(Matrix(0, 2), Vector(0)); });
}

TEST(Scaling, JsonRoundTripAndRefusals) {
  const Scaling scaling = {Vector{{0.1, -2e-9}}, Vector{{1.0 / 3, 7}}, -4.2, 1e-5};
  const auto json = nlohmann::json::parse(nlohmann::json(scaling).dump());
  const auto back = json.get<Scaling>();
  EXPECT_EQ(back.input_mean, scaling.input_mean);
  EXPECT_EQ(back.input_sd, scaling.input_sd);
  EXPECT_EQ(back.target_mean, scaling.target_mean);
  EXPECT_EQ(back.target_sd, scaling.target_sd);
  for (const char* bad :
       {"null", "[]", "{}", R"({"input_mean":[0],"input_sd":[1,2],"target":[0,1]})",
        R"({"input_mean":[0],"input_sd":[0],"target":[0,1]})",
        R"({"input_mean":[0],"input_sd":[1],"target":[0]})",
        R"({"input_mean":["a"],"input_sd":[1],"target":[0,1]})",
        R"({"input_mean":[0],"input_sd":[1],"target":[0,-1]})",
        R"({"input_mean":{},"input_sd":[1],"target":[0,1]})"})
    message_of<ModelFileError>([&] { (void)nlohmann::json::parse(bad).get<Scaling>(); });
}

TEST(Scaling, ASharedScaleIsTheRootMeanSquareAndDoesNotTurnWithTheAxes) {
  const Matrix x{{0, 0, 5}, {30, 1, 5}, {10, 7, 5}, {40, 2, 5}};
  const Vector y{{1, 2, 3, 5}};
  auto scaling = fit_scaling(x, y);
  const double sd =
      std::sqrt((std::pow(scaling.input_sd[0], 2) + std::pow(scaling.input_sd[1], 2)) / 2);
  const std::vector<Index> both = {0, 1};
  share_scale(scaling, x, both);
  EXPECT_DOUBLE_EQ(scaling.input_sd[0], sd);
  EXPECT_DOUBLE_EQ(scaling.input_sd[1], sd);
  Matrix turned = x;
  turned.col(0) = 0.6 * x.col(0) - 0.8 * x.col(1);
  turned.col(1) = 0.8 * x.col(0) + 0.6 * x.col(1);
  auto other = fit_scaling(turned, y);
  share_scale(other, turned, both);
  EXPECT_NEAR(other.input_sd[0], sd, 1e-14 * sd);
  // A column of one value has no spread to share.
  const std::vector<Index> with_constant = {1, 2};
  auto third = fit_scaling(x, y);
  const double own = third.input_sd[1];
  share_scale(third, x, with_constant);
  EXPECT_DOUBLE_EQ(third.input_sd[2], own);
}

}  // namespace scaling_test
}  // namespace mercer::data
