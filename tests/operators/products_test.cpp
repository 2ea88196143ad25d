// Products against a long-double reference. The errors allowed are those promised in the design:
// component by component, in units of sum_j |k_ij| |v_j|, 1e-14 in double (90 roundings) and 5e-7
// in float32 (8 roundings: input, exponent, exp, vector and the sums within a tile).
#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace products_test {

using testing::all_kernels;
using testing::random_matrix;
using testing::reference_matrix;
using testing::scaled_error;
using testing::some_kernel;

double allowed(Precision precision) { return precision == Precision::float32 ? 5e-7 : 1e-14; }

const char* name_of(Precision precision) {
  return precision == Precision::float32 ? "float32" : "float64";
}

struct BestTargetAfterwards {
  ~BestTargetAfterwards() { simd::force_target(""); }
};

void check_products(const kernels::Kernel& kernel, const Matrix& x,
                    const std::vector<Index>& columns, const std::string& what) {
  const auto k = reference_matrix(kernel, x, x);
  for (const auto precision : {Precision::float64, Precision::float32}) {
    const TiledOperator op(kernel, x, precision);
    for (const Index t : columns) {
      const Matrix v = random_matrix(x.rows(), t, 11 + static_cast<std::uint64_t>(t));
      Matrix y = Matrix::Constant(x.rows(), t, 7.0);
      op.apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), allowed(precision))
          << what << ", " << name_of(precision) << ", N = " << x.rows() << ", d = " << x.cols()
          << ", " << t << " columns, " << simd::target_name();
    }
  }
}

TEST(TiledProduct, EveryKernelMatchesTheReferenceOnEveryTarget) {
  const BestTargetAfterwards guard;
  for (const auto& text : all_kernels())
    for (const Index d : {1, 3, 8}) {
      const auto kernel = some_kernel(text, d);
      const Matrix x = random_matrix(150, d, 5);
      for (const auto& target : simd::available_targets()) {
        simd::force_target(target);
        check_products(kernel, x, {1, 17}, text);
        simd::force_target("");
      }
    }
}

TEST(TiledProduct, AnyNumberOfPoints) {
  for (const Index n : {1, 2, 7, 64, 65, 300, 1000})
    for (const std::string text : {"rbf", "matern12", "rbf + linear"})
      check_products(some_kernel(text, 2), random_matrix(n, 2, 3), {1, 3}, text);
}

TEST(TiledProduct, AnyNumberOfRightHandSides) {
  const BestTargetAfterwards guard;
  const auto kernel = some_kernel("matern32", 3);
  const Matrix x = random_matrix(200, 3, 4);
  for (const auto& target : simd::available_targets()) {
    simd::force_target(target);
    check_products(kernel, x, {0, 1, 2, 3, 5, 8, 11, 12, 15, 16, 17, 33, 100}, "matern32");
    simd::force_target("");
  }
}

TEST(TiledProduct, ManyInputs) {
  for (const Index d : {2, 33, 1000})
    for (const std::string text : {"rbf", "rbf:iso", "matern12", "matern52", "periodic", "linear"})
      check_products(some_kernel(text, d), random_matrix(d == 1000 ? 70 : 130, d, 8), {1, 4}, text);
}

TEST(TiledProduct, PositiveVectorsDoNotDriftInFloat32) {
  // All terms of one sign: rounding of partial sums has the least chance to cancel.
  const auto kernel = some_kernel("rbf", 4);
  for (const Index n : {64, 128, 1000}) {
    const Matrix x = random_matrix(n, 4, 9);
    const auto k = reference_matrix(kernel, x, x);
    const TiledOperator op(kernel, x, Precision::float32);
    for (const Index t : {1, 16}) {
      const Matrix v = Matrix::Ones(n, t);
      Matrix y(n, t);
      op.apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), 5e-7) << n << " points, " << t << " columns";
    }
  }
}

TEST(TiledProduct, ShortAndLongLengthscales) {
  for (const double factor : {1e-3, 1e-2, 0.1, 0.3, 10.0, 1e3})
    for (const std::string text : {"rbf", "matern12", "matern32", "matern52", "rq"})
      for (const Index d : {1, 2, 8})
        check_products(some_kernel(text, d, factor), random_matrix(400, d, 6), {1},
                       text + " with lengthscales times " + std::to_string(factor));
}

TEST(TiledProduct, PeriodicAtShortLengthscales) {
  // Points on a circle of radius 1/l are known to a rounding of 1/l.
  for (const double factor : {1e-3, 1e-2, 0.1, 1.0, 10.0})
    for (const Index d : {1, 2}) {
      const auto kernel = some_kernel("periodic", d, factor);
      const Matrix x = random_matrix(400, d, 6);
      const auto k = reference_matrix(kernel, x, x);
      const Matrix v = random_matrix(400, 1, 7);
      Matrix y(400, 1);
      TiledOperator(kernel, x, Precision::float64).apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), 1e-14 * std::max(1.0, 1 / factor));
      TiledOperator(kernel, x, Precision::float32).apply(v, y);
      EXPECT_LE(scaled_error(k, v, y), 5e-7);
    }
}

TEST(TiledProduct, PointsFarFromTheOrigin) {
  for (const double offset : {1e3, 1e6, 1e9})
    for (const std::string text :
         {"rbf", "matern12", "matern32", "matern52", "rq", "periodic", "rbf * periodic"}) {
      const Matrix x = random_matrix(150, 3, 2).array() + offset;
      check_products(some_kernel(text, 3), x, {2}, text);
    }
}

TEST(TiledProduct, DuplicatedPoints) {
  Matrix x = random_matrix(200, 4, 12);
  x.bottomRows(100) = x.topRows(100);
  x.middleRows(10, 20).rowwise() = x.row(5).eval();
  for (const std::string text : {"rbf", "matern12", "matern32", "matern52", "rq", "periodic"})
    check_products(some_kernel(text, 4), x, {1, 16}, text);
}

TEST(TiledProduct, ClustersFarApart) {
  // Tight clusters, thousands of lengthscales from each other: pairs within count fully.
  Matrix x = random_matrix(300, 3, 13);
  for (Index i = 0; i < x.rows(); ++i) x.row(i).array() += 5000.0 * static_cast<double>(i % 7);
  for (const std::string text : {"rbf", "matern12", "matern32", "rq", "rbf + matern52"})
    check_products(some_kernel(text, 3), x, {1}, text);
}

TEST(TiledProduct, VectorsOfAnySize) {
  const auto kernel = some_kernel("rbf", 2);
  const Matrix x = random_matrix(100, 2, 1);
  const auto k = reference_matrix(kernel, x, x);
  const TiledOperator op(kernel, x, Precision::float32);
  for (const double size : {1e-200, 1e-40, 1e40, 1e200}) {
    const Matrix v = size * random_matrix(100, 3, 2);
    Matrix y(100, 3);
    op.apply(v, y);
    EXPECT_LE(scaled_error(k, v, y), 5e-7) << "vectors of size " << size;
  }
}

TEST(TiledProduct, HugeAndTinyInputsGiveNoNan) {
  for (const double size : {1e-300, 1e-150, 1e-30, 1e30, 1e150})
    for (const auto& text : all_kernels()) {
      // Dot products of inputs of size 1e150 and their powers are infinite by themselves.
      const auto kernel = some_kernel(text, 2);
      if (size > 1e100 && !kernel.stationary()) continue;
      Matrix x = size * random_matrix(70, 2, 3);
      x.row(3).setZero();
      for (const auto precision : {Precision::float64, Precision::float32}) {
        Matrix y(70, 2);
        TiledOperator(kernel, x, precision).apply(Matrix::Ones(70, 2), y);
        EXPECT_TRUE(y.allFinite())
            << text << ", inputs of size " << size << ", " << name_of(precision);
      }
    }
}

TEST(TiledProduct, OneOutlierDoesNotSpoilTheOthers) {
  Matrix x = random_matrix(130, 2, 14);
  x(7, 1) = 1e30;
  for (const std::string text : {"rbf", "matern12", "matern52", "rbf + constant"})
    check_products(some_kernel(text, 2), x, {1}, text);
}

TEST(TiledProduct, RefusesPointsThatAreNotNumbers) {
  Matrix x = random_matrix(10, 2, 14);
  x(4, 1) = std::nan("");
  try {
    const TiledOperator op(some_kernel("rbf", 2), x);
    FAIL() << "accepted a NaN";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("input 1 of point 4"), std::string::npos)
        << error.what();
  }
}

TEST(TiledProduct, RefusesVectorsOfTheWrongLength) {
  const TiledOperator op(some_kernel("rbf", 2), random_matrix(10, 2, 14));
  Matrix y(10, 1);
  EXPECT_THROW(op.apply(Matrix::Ones(9, 1), y), DimensionMismatch);
  EXPECT_THROW(op.apply(Matrix::Ones(10, 2), y), DimensionMismatch);
  EXPECT_THROW(TiledOperator(some_kernel("rbf", 3), random_matrix(10, 2, 1)), DimensionMismatch);
}

TEST(TiledProduct, NoPointsAtAll) {
  const TiledOperator op(some_kernel("rbf", 2), Matrix(0, 2));
  Matrix y(0, 1);
  op.apply(Matrix(0, 1), y);
  EXPECT_EQ(op.size(), 0);
}

TEST(TiledProduct, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const Matrix x = random_matrix(1300, 3, 21);
  const Matrix v = random_matrix(1300, 18, 22);
  for (const std::string text : {"rbf", "rbf * linear + matern12"})
    for (const auto precision : {Precision::float64, Precision::float32}) {
      const TiledOperator op(some_kernel(text, 3), x, precision);
      Matrix first(1300, 18);
      set_num_threads(1);
      op.apply(v, first);
      for (const int threads : {2, 3, 5}) {
        set_num_threads(threads);
        Matrix y(1300, 18);
        op.apply(v, y);
        EXPECT_TRUE(y == first) << text << " on " << threads << " threads";
      }
    }
  set_num_threads(before);
}

TEST(TiledProduct, CountsItsProducts) {
  const TiledOperator op(some_kernel("rbf", 2), random_matrix(10, 2, 14));
  Matrix y(10, 3);
  op.apply(Matrix::Ones(10, 3), y);
  op.apply(Matrix::Ones(10, 3), y);
  EXPECT_EQ(op.products(), 6);
}

}  // namespace products_test
}  // namespace mercer::operators
