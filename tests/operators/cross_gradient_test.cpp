// Derivatives of sums over two point sets: in the parameters against the reference derivative of
// every pair, in the inputs against differences of the long-double reference values.
#include "mercer/operators/cross_gradient.hpp"

#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/operators/reference.hpp"

namespace mercer::operators {
namespace cross_gradient_test {

using testing::all_kernels;
using testing::expect_close;
using testing::Long;
using testing::random_matrix;
using testing::some_kernel;
using testing::Sums;

// Expressions whose leaves see some of four inputs, or share lengthscales.
const std::vector<std::string> kSomeInputs = {"rbf(0,2)", "matern32(1) * periodic(0,3) + linear(2)",
                                              "matern12(0,1,3):iso(1,3) * rq(2)",
                                              "poly(1,2):2 + constant * matern52(0)"};

std::vector<std::string> with_some_inputs() {
  auto texts = all_kernels();
  texts.insert(texts.end(), kSomeInputs.begin(), kSomeInputs.end());
  return texts;
}

// sum_ij w_ij dk(a_i, b_j)/dtheta_p pair by pair.
Sums reference_cross(const kernels::Kernel& kernel, const Matrix& a, const Matrix& b,
                     const Matrix& w) {
  Sums sums{Vector::Zero(kernel.num_parameters()), Vector::Zero(kernel.num_parameters())};
  Vector g(kernel.num_parameters());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < b.rows(); ++j) {
      kernel.evaluate_with_gradient(a.data() + i, a.outerStride(), b.data() + j, b.outerStride(),
                                    g);
      sums.value += w(i, j) * g;
      sums.scale += std::abs(w(i, j)) * g.cwiseAbs();
    }
  return sums;
}

TEST(CrossGradient, EveryKernelOnEveryTarget) {
  const Matrix a = random_matrix(300, 4, 1), b = random_matrix(70, 4, 2);
  const Matrix w = random_matrix(300, 70, 3);
  for (const auto& text : with_some_inputs()) {
    const auto kernel = some_kernel(text, 4);
    const auto reference = reference_cross(kernel, a, b, w);
    for (const auto& target : simd::available_targets()) {
      simd::force_target(target);
      Vector gradient = Vector::Constant(kernel.num_parameters(), 7.0);
      cross_gradient(kernel, a, b, w, gradient);
      // As in gradient_test.cpp: sums of squares are formed as a^2 + b^2 - 2ab.
      expect_close(gradient, reference, 1e-13, text + " on " + target);
      simd::force_target("");
    }
  }
}

TEST(CrossGradient, AnyShapeAndShortLengthscales) {
  for (const double factor : {0.02, 1.0})  // all ways to sum the squares
    for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 1}, {1, 5}, {257, 3}, {3, 200}}) {
      const auto kernel = some_kernel("matern32 + rbf * periodic + linear:iso", 2, factor);
      const Matrix a = random_matrix(rows, 2, 5), b = random_matrix(columns, 2, 6);
      const Matrix w = random_matrix(rows, columns, 7);
      Vector gradient(kernel.num_parameters());
      cross_gradient(kernel, a, b, w, gradient);
      // Points on a circle of radius 1/l are known to a rounding of 1/l = 35.
      expect_close(gradient, reference_cross(kernel, a, b, w), 1e-12,
                   std::to_string(rows) + " x " + std::to_string(columns));
    }
}

TEST(CrossGradient, OfOneSetIsTheSymmetricSum) {
  const Matrix x = random_matrix(150, 3, 11), r = random_matrix(150, 150, 12);
  const Matrix s = r + r.transpose();
  const auto kernel = some_kernel("matern52 * periodic + linear", 3);
  Vector cross(kernel.num_parameters()), symmetric(kernel.num_parameters());
  cross_gradient(kernel, x, x, s, cross);
  weighted_gradient(kernel, x, s, symmetric);
  const auto scale = testing::reference_gradient(kernel, x, s).scale;
  for (Index p = 0; p < cross.size(); ++p)
    EXPECT_LE(std::abs(cross(p) - symmetric(p)), 1e-13 * scale(p));
}

TEST(CrossGradient, ReadsBlocksOfLargerMatrices) {
  const Matrix a = random_matrix(40, 3, 1), b = random_matrix(90, 3, 2);
  const Matrix w = random_matrix(40, 90, 3);
  const auto kernel = some_kernel("rbf", 3);
  Vector part(kernel.num_parameters()), copied(kernel.num_parameters());
  cross_gradient(kernel, a.topRows(30), b.middleRows(10, 50), w.block(0, 10, 30, 50), part);
  cross_gradient(kernel, Matrix(a.topRows(30)), Matrix(b.middleRows(10, 50)),
                 Matrix(w.block(0, 10, 30, 50)), copied);
  EXPECT_TRUE(part == copied);
}

TEST(DiagonalGradient, EveryKernel) {
  const Matrix x = random_matrix(600, 4, 1);
  const Vector w = random_matrix(600, 1, 2);
  Vector g;
  for (const auto& text : with_some_inputs()) {
    const auto kernel = some_kernel(text, 4);
    g.resize(kernel.num_parameters());
    Sums sums{Vector::Zero(g.size()), Vector::Zero(g.size())};
    for (Index i = 0; i < x.rows(); ++i) {
      const double* point = x.data() + i;
      kernel.evaluate_with_gradient(point, x.outerStride(), point, x.outerStride(), g);
      sums.value += w(i) * g;
      sums.scale += std::abs(w(i)) * g.cwiseAbs();
    }
    Vector gradient = Vector::Constant(g.size(), 7.0);
    diagonal_gradient(kernel, x, w, gradient);
    // 600 additions of rounded terms, in another order.
    expect_close(gradient, sums, 600 * 1.2e-16, text);
  }
}

// Points whose coordinates are multiples of 2^-26, so that steps of 2^-20 and more are exact.
Matrix on_grid(Matrix x) { return (x * 0x1p26).array().round() * 0x1p-26; }

struct InputSums {
  Matrix value;
  Matrix scale;
};

// sum_i w_ij dk(a_i, b_j)/db_jc by central differences of fourth order in long double.
InputSums reference_inputs(const kernels::Kernel& kernel, const Matrix& a, const Matrix& b,
                           const Matrix& w, double step) {
  InputSums sums{Matrix::Zero(b.rows(), b.cols()), Matrix::Zero(b.rows(), b.cols())};
  Matrix moved = b;
  for (Index j = 0; j < b.rows(); ++j)
    for (Index c = 0; c < b.cols(); ++c)
      for (Index i = 0; i < a.rows(); ++i) {
        Long size = 0;
        const auto at = [&](double shift) {
          moved(j, c) = b(j, c) + shift;
          const auto entry = testing::reference_node(kernel.root(), a, i, moved, j);
          moved(j, c) = b(j, c);
          size = std::max(size, entry.scale);
          return entry.value;
        };
        const Long near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
        const Long derivative = (8 * near - far) / (12 * static_cast<Long>(step));
        sums.value(j, c) += static_cast<double>(w(i, j) * derivative);
        sums.scale(j, c) +=
            static_cast<double>(std::abs(w(i, j)) * (std::abs(derivative) + size * 0x1p-14 / step));
      }
  return sums;
}

void expect_inputs(const Matrix& gradient, const InputSums& reference, double tolerance,
                   const std::string& what) {
  for (Index j = 0; j < gradient.rows(); ++j)
    for (Index c = 0; c < gradient.cols(); ++c)
      EXPECT_LE(std::abs(gradient(j, c) - reference.value(j, c)), tolerance * reference.scale(j, c))
          << what << ", input " << c << " of point " << j << ", expected " << reference.value(j, c);
}

// h^4/30 times the fifth derivative, which for a period of 1 is (2 pi)^5 = 1e4 at most and near the
// cusp of matern12 grows like 1/r^4, is below 1e-11 for h = 2^-14 and pairs with r > 1/50 or r = 0.
constexpr double kStep = 0x1p-14;
constexpr double kInputTolerance = 1e-11;

TEST(InputGradient, EveryKernelOnEveryTarget) {
  const Matrix a = on_grid(random_matrix(40, 4, 1));
  Matrix b = on_grid(random_matrix(15, 4, 2));
  b.row(7) = a.row(20);  // a pair at distance 0: the derivative of a distance is 0 there
  for (const auto& text : with_some_inputs()) {
    Matrix w = random_matrix(40, 15, 3);
    // Differences across a cusp know the derivative of other factors to h only.
    if (text.find("matern12") != std::string::npos) w(20, 7) = 0;
    const auto kernel = some_kernel(text, 4);
    const auto reference = reference_inputs(kernel, a, b, w, kStep);
    for (const auto& target : simd::available_targets()) {
      simd::force_target(target);
      Matrix gradient = Matrix::Zero(15, 4);
      input_gradient(kernel, a, b, w, gradient);
      expect_inputs(gradient, reference, kInputTolerance, text + " on " + target);
      simd::force_target("");
    }
  }
}

TEST(InputGradient, ShortLengthscalesAndPointsFarFromTheOrigin) {
  const Matrix w = random_matrix(30, 20, 3);
  for (const double offset : {0.0, 1000.0}) {
    const Matrix a = on_grid(random_matrix(30, 2, 1)).array() + offset;
    const Matrix b = on_grid(random_matrix(20, 2, 2)).array() + offset;
    for (const char* text : {"rbf", "matern52:iso", "rq + matern32", "rbf * rq(1)"}) {
      const double factor = 0x1p-5;
      const auto kernel = some_kernel(text, 2, factor);
      Matrix gradient = Matrix::Zero(20, 2);
      input_gradient(kernel, a, b, w, gradient);
      expect_inputs(gradient, reference_inputs(kernel, a, b, w, kStep * factor), kInputTolerance,
                    std::string(text) + " at " + std::to_string(offset));
    }
  }
}

// The sum over pairs is linear in the weights, so that large sets are sums over small ones.
TEST(InputGradient, AddsToWhatIsThereOverBlocksOfPoints) {
  const Matrix a = random_matrix(600, 3, 1), b = random_matrix(150, 3, 2);
  const Matrix w = random_matrix(600, 150, 3);
  const auto kernel = some_kernel("matern52 * periodic(1) + linear", 3);
  Matrix whole = Matrix::Ones(150, 3), parts = Matrix::Ones(150, 3);
  input_gradient(kernel, a, b, w, whole);
  for (Index i = 0; i < 600; i += 50)
    for (Index j = 0; j < 150; j += 30)
      input_gradient(kernel, a.middleRows(i, 50), b.middleRows(j, 30), w.block(i, j, 50, 30),
                     parts.middleRows(j, 30));
  // 600 terms of size 1 to 10 a component, of both signs, each known to a few roundings.
  EXPECT_LE((whole - parts).cwiseAbs().maxCoeff(), 600 * 10 * 4 * 1.2e-16);
  EXPECT_GT((whole - Matrix::Ones(150, 3)).cwiseAbs().maxCoeff(), 1);
}

TEST(InputGradient, CuspHasDerivativeZero) {
  const Matrix x = Matrix::Constant(3, 2, 0.3);
  for (const char* text : {"matern12", "matern12 * rbf", "matern12:iso + matern12"}) {
    Matrix gradient = Matrix::Zero(3, 2);
    input_gradient(some_kernel(text, 2), x, x, Matrix::Ones(3, 3), gradient);
    EXPECT_TRUE(gradient == Matrix::Zero(3, 2)) << text;
  }
}

TEST(CrossGradient, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const auto kernel = some_kernel("rbf * linear + matern12(0,2) + periodic", 3);
  const Matrix a = random_matrix(400, 3, 8), b = random_matrix(700, 3, 9);
  const Matrix w = random_matrix(400, 700, 10);
  const Vector v = random_matrix(700, 1, 11);
  Vector cross, diagonal;
  Matrix inputs;
  for (const int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    Vector gradient(kernel.num_parameters()), of_diagonal(kernel.num_parameters());
    Matrix moves = Matrix::Zero(700, 3);
    cross_gradient(kernel, a, b, w, gradient);
    diagonal_gradient(kernel, b, v, of_diagonal);
    input_gradient(kernel, a, b, w, moves);
    if (threads == 1) {
      cross = gradient;
      diagonal = of_diagonal;
      inputs = moves;
    }
    EXPECT_TRUE(gradient == cross) << threads;
    EXPECT_TRUE(of_diagonal == diagonal) << threads;
    EXPECT_TRUE(moves == inputs) << threads;
  }
  set_num_threads(before);
}

TEST(CrossGradient, NoPointsAtAll) {
  const auto kernel = some_kernel("rbf + linear", 2);
  const Matrix none(0, 2), some = random_matrix(4, 2, 1);
  Vector gradient = Vector::Ones(kernel.num_parameters());
  cross_gradient(kernel, none, some, Matrix(0, 4), gradient);
  EXPECT_TRUE(gradient.isZero(0));
  gradient.setOnes();
  cross_gradient(kernel, some, none, Matrix(4, 0), gradient);
  EXPECT_TRUE(gradient.isZero(0));
  gradient.setOnes();
  diagonal_gradient(kernel, none, Vector(0), gradient);
  EXPECT_TRUE(gradient.isZero(0));
  Matrix moves = Matrix::Ones(4, 2);
  input_gradient(kernel, none, some, Matrix(0, 4), moves);
  EXPECT_TRUE(moves == Matrix::Ones(4, 2));
}

TEST(CrossGradient, RefusesWrongShapes) {
  const auto kernel = some_kernel("rbf", 2);
  const Matrix a = random_matrix(4, 2, 1), b = random_matrix(3, 2, 2), w = Matrix::Ones(4, 3);
  Vector gradient(kernel.num_parameters()), longer(kernel.num_parameters() + 1);
  Matrix moves = Matrix::Zero(3, 2), wrong = Matrix::Zero(4, 2), narrow = Matrix::Zero(3, 1);
  EXPECT_THROW(cross_gradient(kernel, b, a, w, gradient), DimensionMismatch);
  EXPECT_THROW(cross_gradient(kernel, a, b, w, longer), DimensionMismatch);
  EXPECT_THROW(cross_gradient(kernel, a, random_matrix(3, 1, 2), w, gradient), DimensionMismatch);
  EXPECT_THROW(input_gradient(kernel, b, a, w, wrong), DimensionMismatch);
  EXPECT_THROW(input_gradient(kernel, a, b, w, wrong), DimensionMismatch);
  EXPECT_THROW(input_gradient(kernel, a, b, w, narrow), DimensionMismatch);
  EXPECT_THROW(input_gradient(kernel, random_matrix(4, 3, 1), b, w, moves), DimensionMismatch);
  EXPECT_THROW(diagonal_gradient(kernel, a, Vector::Ones(3), gradient), DimensionMismatch);
  EXPECT_THROW(diagonal_gradient(kernel, a, Vector::Ones(4), longer), DimensionMismatch);
  EXPECT_THROW(diagonal_gradient(kernel, random_matrix(4, 3, 1), Vector::Ones(4), gradient),
               DimensionMismatch);
}

}  // namespace cross_gradient_test
}  // namespace mercer::operators
