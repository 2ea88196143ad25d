// What is written in an expression is kept, what says the same thing twice is refused, and inputs
// that share a lengthscale (`iso(x,y)`).
#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::kernels {
namespace given_values_test {

std::string refusal(const std::string& text, Index d = 3) {
  try {
    Kernel::parse(text, d);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

Vector values_after_start(const std::string& text) {
  auto kernel = Kernel::parse(text, 3);
  kernel.scale_start_values(7.0, {2, 4, 6});
  return kernel.log_parameters().array().exp();
}

TEST(GivenValues, AnExplicitOneIsNotReplacedByAStartValue) {
  EXPECT_DOUBLE_EQ(values_after_start("1 * rbf:iso:lengthscale=1")(0), 1);
  EXPECT_DOUBLE_EQ(values_after_start("1 * rbf:iso:lengthscale=1")(1), 1);
  EXPECT_DOUBLE_EQ(values_after_start("2 * 0.5 * rbf")(0), 1);
  EXPECT_DOUBLE_EQ(values_after_start("rbf:lengthscale=1")(2), 1);
  // Not written: start values.
  EXPECT_DOUBLE_EQ(values_after_start("rbf:lengthscale=1")(0), 7);
  EXPECT_DOUBLE_EQ(values_after_start("1 * rbf")(2), 4);
}

TEST(GivenValues, WhatIsSaidTwiceIsRefusedWithItsPlace) {
  const std::string twice = "given twice", again = "says a second time";
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"rbf:lengthscale=1:lengthscale=2", "lengthscale of rbf is " + twice},
           {"rbf:lengthscale=1:lengthscale=1", twice},
           {"rq:0.5:alpha=0.7", "alpha of rq is " + twice},
           {"rq:alpha=1:0.5", twice},
           {"periodic:2:3", "period of periodic is " + twice},
           {"poly:2:degree=3", "degree of poly is " + twice},
           {"poly:2:3", twice},
           {"rbf:ard:iso", "iso " + again},
           {"rbf:iso:ard", "ard " + again},
           {"rbf:iso:iso", "iso " + again},
           {"rbf:iso:iso(0,1)", "iso " + again},
           {"rbf:iso(0,1):iso", "iso " + again},
           {"rbf:iso(0,1):ard", "ard " + again},
           {"rbf:iso(0,1):iso(1,2)", "input in common"},
           {"rbf:iso(0,0)", twice},
           {"rbf:iso(0)", "shares its lengthscale with none"},
           {"rbf(0,1):iso(1,2)", "does not see"},
           {"constant:iso(0,1)", "no lengthscale"}}) {
    EXPECT_NE(refusal(text).find(why), std::string::npos) << text << ": " << refusal(text);
    EXPECT_NE(refusal(text).find("at character"), std::string::npos) << text;
  }
}

TEST(GivenValues, OptionsOverAWrittenValueAreRefused) {
  const auto why = [](const std::string& text, std::vector<double> lengthscale,
                      std::optional<double> variance) -> std::string {
    auto kernel = Kernel::parse(text, 3);
    try {
      kernel.set_given(lengthscale, variance);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(why("rbf:lengthscale=3", {5}, {}).find("`lengthscale` is given"), std::string::npos);
  EXPECT_NE(why("rbf:lengthscale=1", {1}, {}).find("leave one"), std::string::npos);
  EXPECT_NE(why("rbf + linear:lengthscale=2", {5}, {}).find("leave one"), std::string::npos);
  EXPECT_NE(why("2 * rbf", {}, 3.0).find("`signal_variance` is given"), std::string::npos);
  EXPECT_NE(why("1 * rbf", {}, 1.0).find("leave one"), std::string::npos);
  EXPECT_NE(why("constant", {1}, {}).find("has no lengthscale"), std::string::npos);
  EXPECT_NE(why("rbf:iso(0,1)", {1, 2, 3}, {}).find("share one lengthscale"), std::string::npos);
  EXPECT_EQ(why("rbf:iso(0,1)", {2, 2, 3}, {}), "accepted");
  EXPECT_EQ(why("rbf:lengthscale=3", {}, 2.0), "accepted");
  EXPECT_EQ(why("2 * rbf", {5}, {}), "accepted");
}

TEST(SharedLengthscale, IsOneParameterAndReadsBack) {
  const auto kernel = Kernel::parse("matern32:iso(0,2)", 3);
  EXPECT_EQ(kernel.parameter_names(),
            (std::vector<std::string>{"signal_variance", "lengthscale[0,2]", "lengthscale[1]"}));
  EXPECT_EQ(kernel.text(), "matern32:iso(0,2)");
  EXPECT_EQ(Kernel::parse(kernel.text(), 3).parameter_names(), kernel.parameter_names());
  // All of them is what iso says, and two groups are possible.
  EXPECT_EQ(Kernel::parse("rbf:iso(0,1,2)", 3).text(), "rbf:iso");
  EXPECT_EQ(Kernel::parse("rbf:iso(0,3):iso(1,2)", 4).num_parameters(), 3);
}

TEST(SharedLengthscale, IsTheArdKernelWithEqualLengthscales) {
  Matrix x(20, 3);
  Rng(1, "points").fill_normal(x);
  for (const char* leaf : {"rbf", "matern32", "linear", "periodic", "rq"}) {
    auto shared = Kernel::parse(leaf + std::string(":iso(0,2)"), 3);
    auto ard = Kernel::parse(leaf, 3);
    shared.set_lengthscales({0.7, 2, 0.7});
    ard.set_lengthscales({0.7, 2, 0.7});
    EXPECT_TRUE(shared.reference_matrix(x, x) == ard.reference_matrix(x, x)) << leaf;
    // Its derivative is the sum of those of the inputs that share it.
    Vector ours(shared.num_parameters()), each(ard.num_parameters());
    const double* a = x.data();
    const double* b = x.data() + 1;
    shared.evaluate_with_gradient(a, x.outerStride(), b, x.outerStride(), ours);
    ard.evaluate_with_gradient(a, x.outerStride(), b, x.outerStride(), each);
    EXPECT_NEAR(ours(1), each(1) + each(3), 1e-15 * (std::abs(each(1)) + std::abs(each(3))));
    EXPECT_DOUBLE_EQ(ours(2), each(2));
  }
}

TEST(SharedLengthscale, StartsAtTheRootMeanSquare) {
  auto kernel = Kernel::parse("rbf:iso(0,1)", 3);
  kernel.scale_start_values(1.0, {3, 4, 6});
  const Vector start = kernel.log_parameters().array().exp();
  EXPECT_NEAR(start(1), std::sqrt(12.5), 1e-14);
  EXPECT_NEAR(start(2), 6, 1e-14);
}

TEST(SharedLengthscale, OfAWholeExpression) {
  auto kernel = Kernel::parse("rbf + matern32(0,1) + linear(2)", 3);
  EXPECT_TRUE(kernel.share_lengthscale({0, 1}, {"0", "1"}));
  EXPECT_EQ(kernel.text(), "rbf:iso(0,1) + matern32(0,1):iso + linear(2)");
  EXPECT_TRUE(kernel.share_lengthscale({0, 1}, {"0", "1"}));  // they share it already
  EXPECT_THROW(kernel.share_lengthscale({1, 2}, {"1", "2"}), InvalidArgument);
  EXPECT_FALSE(Kernel::parse("rbf(0) * rbf(1)", 2).share_lengthscale({0, 1}, {"0", "1"}));
}

}  // namespace given_values_test
}  // namespace mercer::kernels
