#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::kernels {
namespace grammar_test {

std::string error_of(const char* text) {
  try {
    Kernel::parse(text, 2);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Grammar, OneLeafHasAVarianceAndALengthscalePerInput) {
  const auto kernel = Kernel::parse("rbf", 3);
  const std::vector<std::string> names = {"signal_variance", "lengthscale[0]", "lengthscale[1]",
                                          "lengthscale[2]"};
  EXPECT_EQ(kernel.parameter_names(), names);
}

TEST(Grammar, IsoHasOneLengthscale) {
  const auto kernel = Kernel::parse("matern32:iso", 7);
  EXPECT_EQ(kernel.parameter_names(), (std::vector<std::string>{"signal_variance", "lengthscale"}));
}

TEST(Grammar, NumbersAreStartValuesOfTheVariance) {
  const auto kernel = Kernel::parse("2.5 * rbf:iso:lengthscale=0.5 + 0.1*linear:iso", 2);
  const Vector theta = kernel.log_parameters();
  ASSERT_EQ(theta.size(), 3);
  EXPECT_DOUBLE_EQ(std::exp(theta(0)), 2.5);
  EXPECT_DOUBLE_EQ(std::exp(theta(1)), 0.5);
  EXPECT_DOUBLE_EQ(std::exp(theta(2)), 0.1);
}

TEST(Grammar, ShapesAndDegrees) {
  const auto kernel = Kernel::parse("rq:0.3:iso * periodic:period=12:iso + poly:3:iso:offset=2", 1);
  const auto names = kernel.parameter_names();
  const Vector theta = kernel.log_parameters();
  EXPECT_EQ(names[2], "rq_1.alpha");
  EXPECT_DOUBLE_EQ(std::exp(theta(2)), 0.3);
  EXPECT_EQ(names[4], "periodic_2.period");
  EXPECT_DOUBLE_EQ(std::exp(theta(4)), 12.0);
  EXPECT_EQ(names[7], "poly_3.offset");
  EXPECT_DOUBLE_EQ(std::exp(theta(7)), 2.0);
}

TEST(Grammar, InnerSumsLeaveOneVarianceToTheOuterTerm) {
  // v1 * rbf * (linear + v2 * constant): three scales would be one too many.
  const auto kernel = Kernel::parse("rbf:iso * (linear:iso + constant)", 2);
  EXPECT_EQ(kernel.num_parameters(), 3);
}

TEST(Grammar, TextReadsBackToTheSameParameters) {
  for (const char* text :
       {"rbf", "rbf:iso", "matern52 + linear:iso", "rbf * periodic:iso", "poly:3 + constant",
        "rbf * (linear:iso + constant)", "(rbf + linear)", "2 * (rbf + 3 * rq) * matern12",
        "rbf * (2 * linear)", "1 * (0.5 * rbf + linear) + constant", "(rbf * linear) * constant",
        "((rbf)) + 4"}) {
    const auto kernel = Kernel::parse(text, 2);
    const auto again = Kernel::parse(kernel.text(), 2);
    EXPECT_EQ(again.parameter_names(), kernel.parameter_names()) << text << " -> " << kernel.text();
    EXPECT_EQ(again.text(), kernel.text()) << text;
    auto copy = again;
    copy.set_log_parameters(kernel.log_parameters());
    const double a[] = {0.3, -0.7};
    const double b[] = {1.1, 0.2};
    EXPECT_DOUBLE_EQ(copy.evaluate(a, 1, b, 1), kernel.evaluate(a, 1, b, 1)) << text;
  }
}

TEST(Grammar, ErrorsSayWhatAndWhere) {
  EXPECT_NE(error_of("gauss").find("unknown kernel 'gauss'; there are: rbf"), std::string::npos);
  EXPECT_NE(error_of("rbf +").find("at character 6"), std::string::npos);
  EXPECT_NE(error_of("").find("expected a kernel name"), std::string::npos);
  EXPECT_NE(error_of("rbf)").find("expected '+', '*' or the end"), std::string::npos);
  EXPECT_NE(error_of("(rbf").find("expected ')'"), std::string::npos);
  EXPECT_NE(error_of("rbf:soft").find("unknown option 'soft' of rbf"), std::string::npos);
  EXPECT_NE(error_of("rbf:3").find("takes no number"), std::string::npos);
  EXPECT_NE(error_of("poly:2.5").find("whole number"), std::string::npos);
  EXPECT_NE(error_of("-1 * rbf").find("expected a kernel name"), std::string::npos);
  EXPECT_NE(error_of("0 * rbf").find("positive number"), std::string::npos);
  EXPECT_NE(error_of("constant:iso").find("no lengthscale"), std::string::npos);
  EXPECT_NE(error_of(std::string(200, '(').c_str()).find("nested too deeply"), std::string::npos);
}

}  // namespace grammar_test
}  // namespace mercer::kernels
