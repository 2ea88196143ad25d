// Operators over kernels whose leaves see some of the inputs only.
#include <gtest/gtest.h>

#include "mercer/operators/simd/tile_kernels.hpp"
#include "mercer/operators/small_sets.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace inputs_test {

using testing::random_matrix;
using testing::reference_matrix;
using testing::scaled_error;
using testing::some_kernel;

/// Of four inputs; every family, with inputs shared, disjoint and left out.
const std::vector<std::string> kExpressions = {
    "matern32(0,1) * matern12(2)",
    "rbf(3)",
    "rbf(0,2):iso + linear(1)",
    "periodic(1) * matern52(0,3)",
    "periodic(2,3):iso + rq(0) * poly(1,2):3",
    "rbf * matern12(3) + constant",
};

class SomeInputs : public ::testing::TestWithParam<std::string> {};

TEST_P(SomeInputs, ProductsMatchTheReferenceOnEveryTarget) {
  const Matrix x = random_matrix(150, 4, 1), a = random_matrix(33, 4, 2);
  const Matrix v = random_matrix(150, 3, 3);
  const auto kernel = some_kernel(GetParam(), 4);
  const auto k = reference_matrix(kernel, x, x), cross = reference_matrix(kernel, a, x);
  for (const auto& target : simd::available_targets()) {
    simd::force_target(target);
    for (const auto precision : {Precision::float64, Precision::float32}) {
      const double allowed = precision == Precision::float32 ? 5e-7 : 1e-14;
      Matrix y(150, 3), z(33, 3);
      TiledOperator(kernel, x, precision).apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), allowed) << target;
      StoredOperator(kernel, x, precision).apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), allowed) << target;
      cross_apply(kernel, a, x, v, precision, z);
      EXPECT_LE(scaled_error(cross, v, z), allowed) << target;
    }
    simd::force_target("");
  }
}

TEST_P(SomeInputs, KeepDigitsAtShortLengthscalesFarFromTheOrigin) {
  Matrix x = random_matrix(300, 4, 4);
  x.col(2).array() += 1e6;
  const Matrix v = random_matrix(300, 1, 5);
  const auto kernel = some_kernel(GetParam(), 4, 0.02);
  if (!kernel.stationary()) return;  // dot products of 1e6 lose digits by themselves
  const auto k = reference_matrix(kernel, x, x);
  Matrix y(300, 1);
  TiledOperator(kernel, x).apply(v, y);
  // Points on a circle of radius 1/l are known to a rounding of 1/l.
  EXPECT_LE(scaled_error(k, v, y), 1e-12);
  TiledOperator(kernel, x, Precision::float32).apply(v, y);
  EXPECT_LE(scaled_error(k, v, y), 5e-7);
}

TEST_P(SomeInputs, GradientsAreTheSumOverPairs) {
  const Matrix x = random_matrix(130, 4, 6);
  const Matrix u = random_matrix(130, 2, 7), v = random_matrix(130, 2, 8);
  for (const double factor : {0.05, 1.0}) {
    const auto kernel = some_kernel(GetParam(), 4, factor);
    const Matrix s = u * v.transpose();
    const auto reference = testing::reference_gradient(kernel, x, s);
    Vector gradient(kernel.num_parameters());
    Matrix kv(130, 2);
    TiledOperator(kernel, x).apply_with_gradient(u, v, kv, gradient);
    testing::expect_close(gradient, reference, 1e-12, GetParam());
    SmallSets small(kernel);
    small.load(x);
    small.gradient(u.col(0), v.col(0), gradient);
    testing::expect_close(gradient,
                          testing::reference_gradient(kernel, x, u.col(0) * v.col(0).transpose()),
                          1e-12, GetParam());
  }
}

TEST_P(SomeInputs, SmallSetsOfAnySizeOneAfterTheOtherMatchTheReference) {
  const auto kernel = some_kernel(GetParam(), 4);
  for (const auto& target : simd::available_targets()) {
    simd::force_target(target);
    SmallSets small(kernel);
    for (const Index n : {5, 32, 1, 33, 130, 64, 31}) {  // memory grows, and is used again
      const Matrix x = random_matrix(n, 4, static_cast<std::uint64_t>(n));
      const Vector u = random_matrix(n, 1, 7).col(0), v = random_matrix(n, 1, 8).col(0);
      Matrix k(n, n);
      Vector gradient(kernel.num_parameters());
      small.load(x);
      small.matrix(k);
      small.gradient(u, v, gradient);
      // As for products in double above: values are exact to rounding of the features.
      const Matrix identity = Matrix::Identity(n, n);
      EXPECT_LE(scaled_error(reference_matrix(kernel, x, x), identity, k), 1e-12) << target << n;
      EXPECT_EQ(k, Matrix(k.transpose()));
      testing::expect_close(gradient, testing::reference_gradient(kernel, x, u * v.transpose()),
                            1e-12, GetParam());
    }
  }
  simd::force_target("");
}

INSTANTIATE_TEST_SUITE_P(Expressions, SomeInputs, ::testing::ValuesIn(kExpressions),
                         [](const auto& test) { return std::to_string(test.index); });

TEST(SomeInputs, AProductOverDisjointInputsIsTheElementwiseProduct) {
  const Matrix x = random_matrix(200, 3, 9);
  Matrix both(200, 200), space(200, 200), time(200, 200);
  dense_matrix(kernels::Kernel::parse("matern32(0,1) * matern12(2)", 3), x, both);
  dense_matrix(kernels::Kernel::parse("matern32", 2), x.leftCols(2), space);
  dense_matrix(kernels::Kernel::parse("matern12", 1), x.rightCols(1), time);
  EXPECT_LE((both - space.cwiseProduct(time)).cwiseAbs().maxCoeff(), 1e-15);
}

}  // namespace inputs_test
}  // namespace mercer::operators
