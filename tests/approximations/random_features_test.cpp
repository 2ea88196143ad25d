#include "mercer/approximations/random_features.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace random_features_test {

using kernels::Kernel;

/// 12 points with 3 inputs on a scale of about 1.
Matrix points() { return testing::random_matrix(12, 3, 4, "feature points"); }

Matrix gram(const Kernel& kernel, Index count, std::uint64_t seed) {
  const RandomFeatures features(kernel, count, seed);
  Matrix phi(points().rows(), features.count());
  features.evaluate(points(), phi);
  return phi * phi.transpose();
}

class FeatureKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Kernel kernel() const { return Kernel::parse(GetParam(), 3); }
};

// Each entry of the Gram matrix is the mean of independent draws, so the mean over 200 independent
// matrices lies within 5.5 of its standard errors of k: with 78 entries for each of some 30 kernels
// a chance of 1e-4 in all. With 200 frequencies each that is 0.02: neighbours such as matern32 and
// matern52 differ by 0.04.
TEST_P(FeatureKernels, GramMatrixIsUnbiased) {
  const Index repeats = 200, n = points().rows();
  const Matrix k = kernel().reference_matrix(points(), points());
  const Index count = RandomFeatures::smallest_count(kernel()) + 400;
  Matrix sum = Matrix::Zero(n, n), squares = Matrix::Zero(n, n);
  for (Index seed = 0; seed < repeats; ++seed) {
    const Matrix error = gram(kernel(), count, static_cast<std::uint64_t>(seed)) - k;
    sum += error;
    squares += error.cwiseAbs2();
  }
  const double r = static_cast<double>(repeats);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      const double mean = sum(i, j) / r;
      // Polynomials are multiplied out without chance: their variance is zero, or rounding below
      // it.
      const double variance = std::max(squares(i, j) / r - mean * mean, 0.0);
      const double standard_error = std::sqrt(variance / r);
      EXPECT_LE(std::abs(mean), 5.5 * standard_error + 1e-12 * (1 + std::abs(k(i, j))))
          << i << ", " << j;
    }
}

// The expected square of the error is the variance of one frequency over their number, so a hundred
// times as many leave a hundredth of it. The mean of ten such squares is at most a chi-square of
// ten degrees of freedom over ten (all of the error in one direction): five times its expectation
// in one run of 4 million, 1e-5 for all kernels. The mean of 300 draws of few frequencies stands
// for the expectation; one draw does not, where few frequencies differ from zero (periodic, long
// lengthscales). With 800 frequencies for each term the 144 entries are off by about 12 /
// sqrt(1600) = 0.3 in all, where K has a norm of at least sqrt(12).
TEST_P(FeatureKernels, GramMatrixConverges) {
  const Matrix k = kernel().reference_matrix(points(), points());
  const Index few = RandomFeatures::smallest_count(kernel());
  const auto mean_square = [&](Index count, std::uint64_t repeats) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= repeats; ++seed)
      sum += (gram(kernel(), count, seed) - k).squaredNorm();
    return sum / static_cast<double>(repeats);
  };
  const double fine = mean_square(800 * few, 10);
  // Exact features are exact both times.
  EXPECT_LE(fine, 5 * mean_square(8 * few, 300) / 100 + 1e-24 * k.squaredNorm());
  EXPECT_LE(std::sqrt(fine), 0.15 * k.norm());
}

TEST_P(FeatureKernels, SameSeedSameBitsOnAnyThreads) {
  std::vector<Matrix> grams;
  for (const int threads : {1, 3}) {
    const testing::WithThreads scope(threads);
    const RandomFeatures features(kernel(), 200, 3);
    Matrix phi(12, features.count());
    features.evaluate(points(), phi);
    grams.push_back(phi);
  }
  EXPECT_TRUE(testing::same_bits(grams[0], grams[1]));
}

std::vector<std::string> expressions() {
  std::vector<std::string> out;
  for (const auto& leaf : kernels::kernels_registry()) {
    if (!leaf.no_features.empty()) continue;
    const std::string degree = leaf.has_degree() ? ":3" : "";
    out.push_back(std::string(leaf.name) + degree);
    if (leaf.has_lengthscale)
      out.push_back(std::string(leaf.name) + degree + ":iso" +
                    (leaf.has_iso_lengthscale ? ":lengthscale=0.7" : ""));
  }
  for (const char* more :
       {"2*rbf + 0.5*matern12", "rbf*periodic", "matern32*rq*matern52", "linear*rbf",
        "constant + linear + rbf", "poly:2*matern52", "(rbf + linear)*(periodic + constant)",
        "linear*linear", "3*constant*rbf", "rq:alpha=0.2", "rq:alpha=1e6", "periodic:period=3",
        "periodic:iso:lengthscale=0.05", "periodic:iso:lengthscale=1e-4",
        "periodic:iso:lengthscale=9", "matern32(0,1)*matern12(2)", "linear(1)*rbf(0,2)",
        "periodic(2) + poly(0,1):2"})
    out.push_back(more);
  return out;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = std::to_string(test.index) + "_";
  for (const char c : test.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Expressions, FeatureKernels, ::testing::ValuesIn(expressions()),
                         test_name);

TEST(RandomFeatures, UseArdLengthscalesInputByInput) {
  auto kernel = Kernel::parse("matern52", 3);
  kernel.set_lengthscales({0.3, 1, 5});
  const Matrix k = kernel.reference_matrix(points(), points());
  // 144 entries of standard deviation below 1/sqrt(20000).
  EXPECT_LE((gram(kernel, 40000, 1) - k).norm(), 3 * 12 / std::sqrt(20000.0));
}

TEST(RandomFeatures, ShareByVariance) {
  // 90 % of the features for 90 % of the variance: the error is that of 90 frequencies on 0.9 and
  // 10 on 0.1, and the diagonal is exact.
  const auto kernel = Kernel::parse("9*rbf + 1*matern12", 3);
  const RandomFeatures features(kernel, 200, 1);
  EXPECT_EQ(features.count(), 200);
  EXPECT_LE((gram(kernel, 200, 1).diagonal().array() - 10).abs().maxCoeff(), 1e-12);
}

TEST(RandomFeatures, NeverMoreThanAsked) {
  for (const char* text : {"rbf", "rbf + linear", "rbf*poly:2 + matern12 + constant"}) {
    const auto kernel = Kernel::parse(text, 3);
    const Index few = RandomFeatures::smallest_count(kernel);
    for (Index count = few; count < few + 30; ++count)
      EXPECT_LE(RandomFeatures(kernel, count, 0).count(), count);
    EXPECT_EQ(RandomFeatures(kernel, few, 0).count(), few);
    EXPECT_THROW(RandomFeatures(kernel, few - 1, 0), InvalidArgument);
  }
}

TEST(RandomFeatures, RefusePolynomialsThatAreTooLong) {
  EXPECT_EQ(RandomFeatures::refusal(Kernel::parse("poly:2", 9)), "");
  const auto reason = RandomFeatures::refusal(Kernel::parse("poly:6", 20));
  EXPECT_NE(reason.find("more than 1000 monomials"), std::string::npos) << reason;
}

TEST(RandomFeatures, RefuseWrongShapes) {
  const RandomFeatures features(Kernel::parse("rbf", 3), 10, 0);
  Matrix out(12, 10), wrong(12, 9);
  EXPECT_THROW(features.evaluate(points().leftCols(2), out), DimensionMismatch);
  EXPECT_THROW(features.evaluate(points(), wrong), DimensionMismatch);
}

}  // namespace random_features_test
}  // namespace mercer::approximations
