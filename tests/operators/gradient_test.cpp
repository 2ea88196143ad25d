// Gradients against the sum of the reference derivatives of every pair.
#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace gradient_test {

using testing::all_kernels;
using testing::expect_close;
using testing::random_matrix;
using testing::reference_gradient;
using testing::some_kernel;

// The reference itself rounds each term a few times; sums of squares are formed as
// a^2 + b^2 - 2ab where points are within a few lengthscales.
constexpr double kTolerance = 1e-13;
constexpr double kFloatTolerance = 1e-5;

TEST(ProductWithGradient, EveryKernelOnEveryTarget) {
  const Matrix u = random_matrix(150, 3, 2);
  const Matrix v = random_matrix(150, 3, 3);
  for (const auto& text : all_kernels())
    for (const Index d : {1, 4}) {
      const Matrix x = random_matrix(150, d, 1);
      const auto kernel = some_kernel(text, d);
      const auto reference = reference_gradient(kernel, x, u * v.transpose());
      const auto k = testing::reference_matrix(kernel, x, x);
      for (const auto& target : simd::available_targets()) {
        simd::force_target(target);
        for (const auto precision : {Precision::float64, Precision::float32}) {
          const TiledOperator op(kernel, x, precision);
          Vector gradient(kernel.num_parameters());
          Matrix kv(150, 3);
          op.apply_with_gradient(u, v, kv, gradient);
          expect_close(gradient, reference, kTolerance, text + " on " + target);
          EXPECT_LE(testing::scaled_error(k, v, kv), 1e-14) << text;
          if (precision == Precision::float64) continue;
          op.apply_with_quick_gradient(u, v, kv, gradient);
          expect_close(gradient, reference, kFloatTolerance, text + " in float32 on " + target);
          EXPECT_LE(testing::scaled_error(k, v, kv), 1e-6) << text;
        }
        simd::force_target("");
      }
    }
}

TEST(ProductWithGradient, InputsThatShareALengthscale) {
  const Matrix x = random_matrix(150, 4, 1), u = random_matrix(150, 3, 2),
               v = random_matrix(150, 3, 3);
  for (const char* text : {"rbf:iso(0,2)", "matern32:iso(1,3) + linear:iso(0,1)",
                           "periodic:iso(0,3) * rq:iso(0,1):iso(2,3)", "matern12(0,1,3):iso(1,3)"})
    for (const double factor : {0.02, 1.0}) {  // both ways to sum the squares
      const auto kernel = some_kernel(text, 4, factor);
      Vector gradient(kernel.num_parameters());
      Matrix kv(150, 3);
      TiledOperator(kernel, x).apply_with_gradient(u, v, kv, gradient);
      expect_close(gradient, reference_gradient(kernel, x, u * v.transpose()), 1e-12, text);
    }
}

TEST(ProductWithGradient, ManyColumnsAndShortLengthscales) {
  for (const double factor : {0.02, 1.0})
    for (const Index n : {1, 65, 400}) {
      const auto kernel = some_kernel("matern32 + rbf * periodic", 2, factor);
      const Matrix x = random_matrix(n, 2, 5).array() + 100;
      const Matrix u = random_matrix(n, 20, 6);
      const Matrix v = random_matrix(n, 20, 7);
      Vector gradient(kernel.num_parameters());
      Matrix kv(n, 20);
      TiledOperator(kernel, x).apply_with_gradient(u, v, kv, gradient);
      // The reference takes sin^2(pi dx / p) of points near 100: 1e-14 of a phase.
      expect_close(gradient, reference_gradient(kernel, x, u * v.transpose()), 1e-12,
                   "factor " + std::to_string(factor));
    }
}

TEST(ProductWithGradient, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const auto kernel = some_kernel("rbf * linear + matern12", 3);
  const TiledOperator op(kernel, random_matrix(900, 3, 8));
  const Matrix u = random_matrix(900, 4, 9);
  const Matrix v = random_matrix(900, 4, 10);
  set_num_threads(1);
  Vector first(kernel.num_parameters());
  Matrix first_kv(900, 4);
  op.apply_with_gradient(u, v, first_kv, first);
  for (const int threads : {2, 3, 5}) {
    set_num_threads(threads);
    Vector gradient(kernel.num_parameters());
    Matrix kv(900, 4);
    op.apply_with_gradient(u, v, kv, gradient);
    EXPECT_TRUE(gradient == first);
    EXPECT_TRUE(kv == first_kv);
  }
  set_num_threads(before);
}

TEST(WeightedGradient, IsTheSumOverPairs) {
  for (const auto& text : all_kernels())
    for (const Index n : {1, 64, 150}) {
      const Matrix x = random_matrix(n, 3, 11);
      const Matrix r = random_matrix(n, n, 12);
      const Matrix s = r + r.transpose();
      const auto kernel = some_kernel(text, 3);
      Vector gradient(kernel.num_parameters());
      weighted_gradient(kernel, x, s, gradient);
      expect_close(gradient, reference_gradient(kernel, x, s), kTolerance, text);
    }
}

TEST(WeightedGradient, ReadsTheLowerTriangleAndTakesItFromARankOne) {
  for (const Index n : {1, 64, 150}) {
    const Matrix x = random_matrix(n, 3, 11);
    const Matrix r = random_matrix(n, n, 12);
    const Vector w = random_matrix(n, 1, 13);
    const Matrix s = r + r.transpose();
    const auto kernel = some_kernel("matern52", 3);
    const auto expected = reference_gradient(kernel, x, w * w.transpose() - s);
    Matrix lower = s;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(NAN);
    Vector gradient(kernel.num_parameters());
    weighted_gradient(kernel, x, w, lower, gradient);
    expect_close(gradient, expected, kTolerance, "matern52");
    weighted_gradient(kernel, x, lower, gradient);
    expect_close(gradient, reference_gradient(kernel, x, s), kTolerance, "matern52");
  }
}

TEST(WeightedGradient, RefusesWrongShapes) {
  const auto kernel = some_kernel("rbf", 2);
  Vector gradient(kernel.num_parameters());
  Vector wrong(kernel.num_parameters() + 1);
  const Matrix x = random_matrix(4, 2, 1);
  EXPECT_THROW(weighted_gradient(kernel, x, Matrix::Ones(3, 3), gradient), DimensionMismatch);
  EXPECT_THROW(weighted_gradient(kernel, x, Matrix::Ones(4, 4), wrong), DimensionMismatch);
  EXPECT_THROW(weighted_gradient(kernel, x, Vector::Ones(3), Matrix::Ones(4, 4), gradient),
               DimensionMismatch);
}

}  // namespace gradient_test
}  // namespace mercer::operators
