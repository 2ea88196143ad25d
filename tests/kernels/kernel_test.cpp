// Laws over the whole registry: a new kernel is tested by being registered.
#include "mercer/kernels/kernel.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::kernels {
namespace kernel_test {

// Every leaf, isotropic and ARD, and a few expressions.
std::vector<std::string> all_expressions() {
  std::vector<std::string> out;
  for (const auto& info : kernels_registry()) {
    out.emplace_back(info.name);
    if (info.has_lengthscale) out.push_back(std::string(info.name) + ":iso");
  }
  out.insert(out.end(), {"rbf + linear", "matern52 * periodic:iso", "rbf * (linear:iso + constant)",
                         "poly:3:iso + rq:iso + 0.5 * matern12"});
  return out;
}

Kernel with_random_parameters(const std::string& text, Index d, std::uint64_t seed) {
  auto kernel = Kernel::parse(text, d);
  Rng rng(seed, "parameters");
  Vector theta(kernel.num_parameters());
  for (auto& value : theta) value = 0.6 * rng.normal();
  kernel.set_log_parameters(theta);
  return kernel;
}

Matrix random_points(Index n, Index d, std::uint64_t seed) {
  Matrix x(n, d);
  Rng(seed, "points").fill_normal(x);
  return x;
}

class KernelLaw : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelLaw, IsSymmetricBitForBit) {
  const auto kernel = with_random_parameters(GetParam(), 3, 1);
  const Matrix x = random_points(20, 3, 2);
  const Matrix k = kernel.reference_matrix(x, x);
  EXPECT_TRUE((k.array() == k.transpose().array()).all());
}

TEST_P(KernelLaw, IsPositiveSemidefinite) {
  for (const Index d : {1, 4}) {
    const auto kernel = with_random_parameters(GetParam(), d, 3);
    const Matrix x = random_points(40, d, 4);
    const Matrix k = kernel.reference_matrix(x, x);
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(k, Eigen::EigenvaluesOnly);
    // Rounding of the eigenvalue solver: a few eps times the norm.
    EXPECT_GE(eigen.eigenvalues()(0), -1e-13 * eigen.eigenvalues().cwiseAbs().maxCoeff());
  }
}

TEST_P(KernelLaw, GradientMatchesCentralDifferences) {
  const auto kernel = with_random_parameters(GetParam(), 3, 5);
  const Matrix x = random_points(6, 3, 6);
  const Vector theta = kernel.log_parameters();
  Vector gradient(theta.size());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j <= i; ++j) {
      const double value =
          kernel.evaluate_with_gradient(x.data() + i, 6, x.data() + j, 6, gradient);
      EXPECT_EQ(value, kernel.evaluate(x.data() + i, 6, x.data() + j, 6));
      for (Index p = 0; p < theta.size(); ++p) {
        // Fourth-order central differences at three steps; the best of them counts.
        const auto at = [&](double step) {
          auto moved = kernel;
          Vector t = theta;
          t(p) += step;
          moved.set_log_parameters(t);
          return moved.evaluate(x.data() + i, 6, x.data() + j, 6);
        };
        const double scale = std::abs(gradient(p)) + 1e-3 * std::abs(value) + 1e-12;
        double best = 1e300;
        for (const double h : {1e-2, 1e-3, 1e-4}) {
          const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
          best = std::min(best, std::abs(slope - gradient(p)) / scale);
        }
        EXPECT_LE(best, 1e-7) << GetParam() << " "
                              << kernel.parameter_names()[static_cast<std::size_t>(p)];
      }
    }
  }
}

TEST_P(KernelLaw, DiagonalIsTheValueOfAPointWithItself) {
  const auto kernel = with_random_parameters(GetParam(), 2, 7);
  const Matrix x = random_points(9, 2, 8);
  EXPECT_EQ(kernel.diagonal(x), kernel.reference_matrix(x, x).diagonal());
}

TEST_P(KernelLaw, LogParametersGoInAndOut) {
  auto kernel = Kernel::parse(GetParam(), 2);
  Vector theta(kernel.num_parameters());
  Rng(9, "theta").fill_normal(theta);
  kernel.set_log_parameters(theta);
  EXPECT_LE((kernel.log_parameters() - theta).cwiseAbs().maxCoeff(), 1e-14);
  EXPECT_THROW(kernel.set_log_parameters(Vector::Zero(theta.size() + 1)), DimensionMismatch);
}

TEST_P(KernelLaw, StationaryKernelsForgetTranslation) {
  const auto kernel = with_random_parameters(GetParam(), 2, 10);
  const Matrix x = random_points(8, 2, 11);
  const Matrix moved = x.array() + 0.5;  // exact in binary for most entries; allow rounding
  const double difference =
      (kernel.reference_matrix(x, x) - kernel.reference_matrix(moved, moved)).cwiseAbs().maxCoeff();
  if (kernel.stationary())
    EXPECT_LE(difference, 1e-13 * kernel.diagonal(x).maxCoeff());
  else
    EXPECT_GT(difference, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Registry, KernelLaw, ::testing::ValuesIn(all_expressions()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (auto& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// Closed forms from Rasmussen & Williams (2006), chapter 4, at one pair of points.
TEST(Kernel, ClosedForms) {
  const double a[] = {0.2};
  const double b[] = {1.4};
  const double r = 1.2 / 0.8;
  const auto value = [&](const std::string& text) {
    auto kernel = Kernel::parse(text, 1);
    kernel.set_all_lengthscales(0.8);
    kernel.set_all_variances(2.0);
    return kernel.evaluate(a, 1, b, 1);
  };
  const double pi = std::numbers::pi;
  EXPECT_NEAR(value("rbf"), 2 * std::exp(-r * r / 2), 1e-15);
  EXPECT_NEAR(value("matern12"), 2 * std::exp(-r), 1e-15);
  EXPECT_NEAR(value("matern32"), 2 * (1 + std::sqrt(3.0) * r) * std::exp(-std::sqrt(3.0) * r),
              1e-15);
  EXPECT_NEAR(value("matern52"),
              2 * (1 + std::sqrt(5.0) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5.0) * r), 1e-15);
  EXPECT_NEAR(value("rq:0.7"), 2 * std::pow(1 + r * r / 1.4, -0.7), 1e-15);
  EXPECT_NEAR(value("periodic:3"), 2 * std::exp(-2 * std::pow(std::sin(pi * 1.2 / 3), 2) / 0.64),
              1e-15);
  EXPECT_NEAR(value("linear"), 2 * 0.28 / 0.64, 1e-15);
  EXPECT_NEAR(value("linear:iso"), 2 * 0.28, 1e-15);
  EXPECT_NEAR(value("poly:3:offset=0.5"), 2 * std::pow(0.28 / 0.64 + 0.5, 3), 1e-15);
  EXPECT_NEAR(value("constant"), 2.0, 0);
}

TEST(Kernel, LengthscalesMustFitTheInputs) {
  auto kernel = Kernel::parse("rbf", 3);
  EXPECT_THROW(kernel.set_lengthscales({1.0, 2.0}), DimensionMismatch);
  kernel.set_lengthscales({1.0, 2.0, 3.0});
  EXPECT_DOUBLE_EQ(std::exp(kernel.log_parameters()(3)), 3.0);
  auto iso = Kernel::parse("rbf:iso", 3);
  EXPECT_THROW(iso.set_lengthscales({1.0, 2.0, 3.0}), InvalidArgument);
}

}  // namespace kernel_test
}  // namespace mercer::kernels
