#include "mercer/optim/box.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::optim {
namespace box_test {

Vector one(double x) { return Vector::Constant(1, x); }

TEST(Box, GoesThereAndBack) {
  const Box box(one(-3), one(8));
  for (const double theta : {-2.9, -1.0, 2.5, 7.99})
    EXPECT_NEAR(box.to_theta(box.to_z(one(theta)))(0), theta, 1e-12);
  EXPECT_NEAR(box.slope(box.to_z(one(2.5)))(0), 1.0, 1e-12);  // in the middle
}

TEST(Box, SlopeIsTheDerivative) {
  const Box box(one(-3), one(8));
  for (const double z : {-12.0, -1.0, 0.0, 4.0}) {
    const double h = 1e-6;
    const double difference = (box.to_theta(one(z + h))(0) - box.to_theta(one(z - h))(0)) / (2 * h);
    EXPECT_NEAR(box.slope(one(z))(0), difference, 1e-8);
  }
}

TEST(Box, NoStepLeavesIt) {
  const Box box(one(0.1), one(0.3));
  for (const double z : {-1e300, -50.0, 50.0, 1e300}) {
    const double theta = box.to_theta(one(z))(0);
    EXPECT_GE(theta, 0.1);
    EXPECT_LE(theta, 0.3);
  }
  EXPECT_EQ(box.hit(0, 0.1), -1);
  EXPECT_EQ(box.hit(0, 0.29999), 1);
  EXPECT_EQ(box.hit(0, 0.2), 0);
}

TEST(Box, EqualBoundsFixAParameterAndInfiniteOnesFreeIt) {
  const Box fixed(one(2), one(2));
  EXPECT_EQ(fixed.to_theta(one(5))(0), 2.0);
  EXPECT_EQ(fixed.slope(one(5))(0), 0.0);
  const Box open(one(-INFINITY), one(INFINITY));
  EXPECT_EQ(open.to_theta(one(5))(0), 5.0);
  EXPECT_EQ(open.hit(0, 1e300), 0);
}

TEST(Box, RefusesBoundsThatMakeNoSense) {
  EXPECT_THROW(Box(one(2), one(1)), InvalidArgument);
  EXPECT_THROW(Box(one(0), one(INFINITY)), InvalidArgument);
  EXPECT_THROW(Box(one(0), one(NAN)), InvalidArgument);
  EXPECT_THROW(Box(one(0), Vector::Ones(2)), DimensionMismatch);
}

}  // namespace box_test
}  // namespace mercer::optim
