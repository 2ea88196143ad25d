#include "mercer/operators/stored_operator.hpp"

#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace stored_operator_test {

using testing::random_matrix;
using testing::some_kernel;

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

}  // namespace stored_operator_test
}  // namespace mercer::operators
