#include "mercer/operators/stored_operator.hpp"

#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace {

using testing::random_matrix;
using testing::some_kernel;

TEST(StoredOperator, MatchesTheReference) {
  for (const std::string text : {"rbf", "matern12", "2 * matern52 + linear"})
    for (const Index n : {1, 65, 400}) {
      const Matrix x = random_matrix(n, 3, 1);
      const auto kernel = some_kernel(text, 3);
      const auto k = testing::reference_matrix(kernel, x, x);
      for (const auto precision : {Precision::float64, Precision::float32}) {
        const StoredOperator op(kernel, x, precision);
        for (const Index t : {1, 3, 20}) {
          const Matrix v = random_matrix(n, t, 2);
          Matrix y(n, t);
          op.apply(v, y);
          EXPECT_LE(testing::scaled_error(k, v, y), precision == Precision::float32 ? 5e-7 : 1e-14)
              << text << ", N = " << n << ", " << t << " columns";
        }
      }
    }
}

TEST(StoredOperator, KeepsItsDigitsAtShortLengthscales) {
  // Groups evaluated in double although float32 is stored.
  const Matrix x = random_matrix(300, 1, 3);
  const auto kernel = some_kernel("rbf", 1, 1e-3);
  const auto k = testing::reference_matrix(kernel, x, x);
  const Matrix v = random_matrix(300, 1, 4);
  Matrix y(300, 1);
  StoredOperator(kernel, x, Precision::float32).apply(v, y);
  EXPECT_LE(testing::scaled_error(k, v, y), 5e-7);
}

TEST(StoredOperator, GivesColumnsAndGradientsLikeTheTiledOne) {
  const Matrix x = random_matrix(200, 2, 5);
  const auto kernel = some_kernel("matern32", 2);
  const StoredOperator stored(kernel, x, Precision::float32);
  const TiledOperator tiled(kernel, x, Precision::float32);
  const Matrix u = random_matrix(200, 2, 6);
  const Matrix v = random_matrix(200, 2, 7);
  Matrix a(200, 2);
  Matrix b(200, 2);
  Vector ga(kernel.num_parameters());
  Vector gb(kernel.num_parameters());
  stored.apply_with_gradient(u, v, a, ga);
  tiled.apply_with_gradient(u, v, b, gb);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(ga == gb);
  const std::vector<Index> which = {3, 150};
  stored.columns(which, a);
  tiled.columns(which, b);
  EXPECT_TRUE(a == b);
}

TEST(StoredOperator, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const Matrix x = random_matrix(800, 3, 8);
  const Matrix v = random_matrix(800, 3, 9);
  set_num_threads(1);
  Matrix first(800, 3);
  StoredOperator(some_kernel("rbf", 3), x, Precision::float32).apply(v, first);
  for (const int threads : {2, 3, 5}) {
    set_num_threads(threads);
    Matrix y(800, 3);
    StoredOperator(some_kernel("rbf", 3), x, Precision::float32).apply(v, y);
    EXPECT_TRUE(y == first);
  }
  set_num_threads(before);
}

TEST(Cost, FormulasAndMeasurement) {
  EXPECT_GE(StoredOperator::bytes(1000, Precision::float64), 4e6);
  EXPECT_LE(StoredOperator::bytes(1000, Precision::float64), 5e6);
  EXPECT_DOUBLE_EQ(StoredOperator::bytes(1000, Precision::float32),
                   StoredOperator::bytes(1000, Precision::float64) / 2);
  EXPECT_LT(tiled_bytes(100000, 8, 1),
            0.01 * stored_info().bytes(100000, 8, 1, Precision::float32));
  const auto kernel = some_kernel("rbf", 3);
  const double seconds =
      measure_seconds_per_pair(kernel, random_matrix(3000, 3, 1), Precision::float32, 1);
  EXPECT_GT(seconds, 0);
  EXPECT_EQ(measure_seconds_per_pair(kernel, Matrix(0, 3), Precision::float32, 1), 0);
}

}  // namespace
}  // namespace mercer::operators
