#include "mercer/core/options.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace mercer {
namespace {

struct SampleOptions {
  double tolerance = 1e-6;
  int count = 0;
  std::optional<double> noise;
};

template <class Visitor>
void visit_fields(SampleOptions& o, Visitor&& field) {
  field("tolerance", o.tolerance, Positive{});
  field("count", o.count, NonNegative{});
  field("noise", o.noise, Positive{});
}

std::string complaint(const SampleOptions& options) {
  try {
    validate(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, DefaultsHold) { EXPECT_EQ(complaint({}), ""); }

TEST(Options, TheFirstBrokenRuleIsNamedWithItsValue) {
  EXPECT_EQ(complaint({.tolerance = -1}), "tolerance is -1, but must be positive");
  EXPECT_EQ(complaint({.count = -3}), "count is -3, but must be zero or positive");
}

TEST(Options, NotANumberAndInfinityBreakEveryRule) {
  EXPECT_NE(complaint({.tolerance = std::numeric_limits<double>::quiet_NaN()}), "");
  EXPECT_NE(complaint({.tolerance = std::numeric_limits<double>::infinity()}), "");
}

TEST(Options, AnUnsetFieldIsNotChecked) {
  EXPECT_EQ(complaint({.noise = std::nullopt}), "");
  EXPECT_EQ(complaint({.noise = 0.0}), "noise is 0, but must be positive");
}

}  // namespace
}  // namespace mercer
