// Laws that every operator of the registry obeys, against kernel values in long double.
//
// Deleting a line of mercer/operators/registry.cpp takes that operator out of plans, comparisons,
// solves, help and these laws, and nothing else has to change. Two things show it: nobody outside
// the operator's own file knows its name (tests/rooms_test.py looks for the string literals), and
// an operator that is registered at run time, which no source can know, is found by all of them
// (here, tests/inference/system_test.cpp and tests/models/plan_test.cpp).
#include "mercer/operators/registry.hpp"

#include <gtest/gtest.h>

#include "mercer/core/planned_threads.hpp"
#include "mercer/core/threads.hpp"
#include "tests/operators/allocated_bytes.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace registry_test {

using testing::expect_close;
using testing::random_matrix;
using testing::reference_matrix;
using testing::scaled_error;
using testing::some_kernel;

// A sum of products keeps the digits of its arithmetic: errors of single terms, a few roundings
// each, are measured against the sum of absolute values.
double tolerance(Precision precision) { return precision == Precision::float32 ? 5e-7 : 1e-14; }

constexpr auto kPrecisions = {Precision::float64, Precision::float32};
const std::vector<std::string> kKernels = {"rbf", "matern12", "2 * matern52 + linear"};

class Operators : public ::testing::TestWithParam<std::string> {
 protected:
  static const OperatorInfo& info() { return operators().find(GetParam()); }
};

TEST_P(Operators, MultiplyLikeTheReference) {
  for (const auto& text : kKernels)
    for (const Index n : {1, 65, 400}) {
      const Matrix x = random_matrix(n, 3, 1);
      const auto kernel = some_kernel(text, 3);
      const auto k = reference_matrix(kernel, x, x);
      for (const auto precision : kPrecisions) {
        const auto op = make(GetParam(), kernel, x, precision);
        EXPECT_EQ(op->size(), n);
        EXPECT_EQ(op->precision(), precision);
        EXPECT_TRUE(op->points() == x);
        for (const Index t : {1, 3, 20}) {
          const Matrix v = random_matrix(n, t, 2);
          Matrix y(n, t);
          op->apply(v, y);
          EXPECT_LE(scaled_error(k, v, y), tolerance(precision))
              << text << ", N = " << n << ", " << t << " columns";
        }
      }
    }
}

TEST_P(Operators, AreSymmetric) {
  const Matrix x = random_matrix(300, 2, 3);
  const auto kernel = some_kernel("matern32 * rbf", 2);
  const Matrix scales = kernel.reference_matrix(x, x).cwiseAbs();
  for (const auto precision : kPrecisions) {
    const auto op = make(GetParam(), kernel, x, precision);
    const Matrix u = random_matrix(300, 1, 4), v = random_matrix(300, 1, 5);
    Matrix ku(300, 1), kv(300, 1);
    op->apply(u, ku);
    op->apply(v, kv);
    const double left = (u.transpose() * kv).value(), right = (v.transpose() * ku).value();
    const double scale = (u.cwiseAbs().transpose() * scales * v.cwiseAbs()).value();
    EXPECT_LE(std::abs(left - right), 2 * tolerance(precision) * scale);
  }
}

TEST_P(Operators, GiveColumnsInDouble) {
  const Matrix x = random_matrix(200, 3, 6);
  const std::vector<Index> which = {5, 199, 0, 5};
  Matrix selection = Matrix::Zero(200, 4);
  for (Index k = 0; k < 4; ++k) selection(which[static_cast<std::size_t>(k)], k) = 1;
  for (const auto& text : kKernels) {
    const auto kernel = some_kernel(text, 3);
    const auto reference = reference_matrix(kernel, x, x);
    for (const auto precision : kPrecisions) {
      Matrix out = Matrix::Constant(200, 4, 7.0);
      make(GetParam(), kernel, x, precision)->columns(which, out);
      EXPECT_LE(scaled_error(reference, selection, out), 2e-14) << text;
    }
  }
}

TEST_P(Operators, GiveProductAndGradientInDouble) {
  const Matrix x = random_matrix(150, 3, 7);
  const Matrix u = random_matrix(150, 3, 8), v = random_matrix(150, 3, 9);
  for (const auto& text : kKernels) {
    const auto kernel = some_kernel(text, 3);
    const auto reference = testing::reference_gradient(kernel, x, u * v.transpose());
    const auto k = reference_matrix(kernel, x, x);
    for (const auto precision : kPrecisions) {
      Matrix kv(150, 3);
      Vector gradient(kernel.num_parameters());
      make(GetParam(), kernel, x, precision)->apply_with_gradient(u, v, kv, gradient);
      // The reference itself rounds each term a few times.
      expect_close(gradient, reference, 1e-13, text);
      EXPECT_LE(scaled_error(k, v, kv), 1e-14) << text;
    }
  }
}

TEST_P(Operators, GiveQuickGradientsInTheirPrecision) {
  for (const Index n : {1, 150}) {
    const Matrix x = random_matrix(n, 3, 7);
    const Matrix u = random_matrix(n, 3, 8), v = random_matrix(n, 3, 9);
    for (const auto& text : kKernels) {
      const auto kernel = some_kernel(text, 3);
      const auto reference = testing::reference_gradient(kernel, x, u * v.transpose());
      const auto k = reference_matrix(kernel, x, x);
      for (const auto precision : kPrecisions) {
        Matrix kv(n, 3);
        Vector gradient(kernel.num_parameters());
        make(GetParam(), kernel, x, precision)->apply_with_quick_gradient(u, v, kv, gradient);
        expect_close(gradient, reference, precision == Precision::float32 ? 1e-6 : 1e-13, text);
        EXPECT_LE(scaled_error(k, v, kv), tolerance(precision)) << text;
      }
    }
  }
}

TEST_P(Operators, MultiplyAcrossToNewPoints) {
  const Matrix x = random_matrix(230, 3, 10);
  const Matrix v = random_matrix(230, 2, 11);
  for (const auto& text : kKernels) {
    const auto kernel = some_kernel(text, 3);
    for (const auto precision : kPrecisions) {
      const auto op = make(GetParam(), kernel, x, precision);
      for (const Index m : {0, 1, 70}) {
        const Matrix at = random_matrix(m, 3, 12);
        Matrix y(m, 2);
        op->cross(at, v, y);
        EXPECT_LE(scaled_error(reference_matrix(kernel, at, x), v, y), tolerance(precision))
            << text << ", " << m << " new points";
      }
      // At the points themselves it is the product.
      Matrix across(230, 2), y(230, 2);
      op->cross(x, v, across);
      op->apply(v, y);
      const Matrix scale = kernel.reference_matrix(x, x).cwiseAbs() * v.cwiseAbs();
      EXPECT_LE(((across - y).array().abs() / scale.array()).maxCoeff(), 2 * tolerance(precision));
    }
  }
}

TEST_P(Operators, RefuseWrongShapes) {
  const auto op = make(GetParam(), some_kernel("rbf", 2), random_matrix(10, 2, 13));
  Matrix y(10, 2), short_y(9, 2);
  EXPECT_THROW(op->apply(Matrix::Ones(9, 2), y), DimensionMismatch);
  EXPECT_THROW(op->apply(Matrix::Ones(10, 2), short_y), DimensionMismatch);
  EXPECT_THROW(op->cross(Matrix::Ones(10, 2), Matrix::Ones(9, 2), y), DimensionMismatch);
  EXPECT_THROW(op->cross(Matrix::Ones(10, 2), Matrix::Ones(10, 2), short_y), DimensionMismatch);
  EXPECT_THROW(op->columns(std::vector<Index>{10}, y.leftCols(1)), DimensionMismatch);
}

TEST_P(Operators, CountTheirProducts) {
  const auto op = make(GetParam(), some_kernel("rbf", 2), random_matrix(40, 2, 14));
  const Matrix v = random_matrix(40, 3, 15);
  Matrix y(40, 3);
  op->apply(v, y);
  EXPECT_EQ(op->products(), 3);
  op->cross(op->points(), v, y);
  EXPECT_EQ(op->products(), 3);
}

TEST_P(Operators, GiveTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const Matrix x = random_matrix(900, 3, 16), at = random_matrix(300, 3, 17);
  const Matrix v = random_matrix(900, 3, 18);
  const auto kernel = some_kernel("rbf * linear + matern12", 3);
  Matrix first(900, 3), first_across(300, 3);
  for (const int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    const auto op = make(GetParam(), kernel, x, Precision::float32);
    Matrix y(900, 3), across(300, 3);
    op->apply(v, y);
    op->cross(at, v, across);
    if (threads == 1) {
      first = y;
      first_across = across;
    }
    EXPECT_TRUE(y == first) << threads << " threads";
    EXPECT_TRUE(across == first_across) << threads << " threads";
  }
  set_num_threads(before);
}

TEST_P(Operators, StateTheMemoryTheyTake) {
  const int before = num_threads();
  set_num_threads(kPlannedThreads);  // each thread has its tiles, used or not
  const Index n = 3000, d = 6;
  const auto kernel = some_kernel("rbf", d);
  const Matrix x = random_matrix(n, d, 19);
  for (const Index columns : {1, 8})
    for (const auto precision : kPrecisions) {
      const Matrix v = random_matrix(n, columns, 20);
      Matrix y(n, columns);
      testing::restart_peak();
      const auto op = make(GetParam(), kernel, x, precision);
      op->apply(v, y);
      // The points that the operator keeps are a matrix of Eigen, which is not counted.
      const double taken = testing::peak_bytes() + 8.0 * static_cast<double>(n * d);
      const double stated = info().bytes(n, d, columns, precision);
      EXPECT_GE(1.02 * stated, taken) << columns << " columns";  // headers of small blocks
      // A thread that found no work left has taken no tiles, which are less than half a megabyte.
      EXPECT_LE(stated, 3 * taken + 5e5 * kPlannedThreads) << columns << " columns";
    }
  set_num_threads(before);
}

TEST_P(Operators, StateTheTimeTheyTake) {
  const Speeds speeds{.pair_seconds_double = 2e-10,
                      .pair_seconds_single = 1e-10,
                      .column_seconds_double = 2e-11,
                      .column_seconds_single = 1e-11,
                      .flops = 1e11,
                      .bandwidth = 2e10};
  for (const auto precision : kPrecisions) {
    const double one = info().product_seconds(speeds, 1000, 1, precision);
    EXPECT_GT(one, 0);
    EXPECT_GT(info().product_seconds(speeds, 1000, 2, precision), one);
    EXPECT_LT(info().product_seconds(speeds, 1000, 2, precision), 2 * one);
    EXPECT_GT(info().product_seconds(speeds, 2000, 1, precision), one);
    EXPECT_GE(info().build_seconds(speeds, 1000, precision), 0);
  }
  EXPECT_LT(info().product_seconds(speeds, 1000, 1, Precision::float32),
            info().product_seconds(speeds, 1000, 1, Precision::float64));
  EXPECT_GE(info().automatic.least_gain, 1);
}

INSTANTIATE_TEST_SUITE_P(Registry, Operators, ::testing::ValuesIn(operators().names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(OperatorRegistry, TheDefaultServesEverywhere) {
  const auto& info = default_operator();
  EXPECT_EQ(info.refusal, nullptr);
  EXPECT_TRUE(info.automatic.allowed);
}

TEST(OperatorRegistry, AnUnknownNameIsAnsweredWithTheList) {
  try {
    make("no-such", some_kernel("rbf", 1), Matrix::Zero(1, 1));
    FAIL();
  } catch (const InvalidArgument& error) {
    for (const auto& info : operators())
      EXPECT_NE(std::string(error.what()).find(info.name), std::string::npos) << error.what();
  }
}

TEST(OperatorRegistry, AnOperatorAddedAtRunTimeIsMadeUnlessItRefuses) {
  OperatorInfo dummy = default_operator();
  dummy.name = "dummy";
  dummy.refusal = [](const kernels::Kernel&, Index n, Index) {
    return std::string(n > 5 ? "it is for 5 points at most" : "");
  };
  const auto registered = operators().add(dummy);
  const auto kernel = some_kernel("rbf", 2);

  EXPECT_EQ(make("dummy", kernel, Matrix::Zero(5, 2))->size(), 5);
  try {
    make("dummy", kernel, Matrix::Zero(6, 2));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "dummy: it is for 5 points at most");
  }
}

}  // namespace registry_test
}  // namespace mercer::operators
