#include "mercer/approximations/grid_interpolation.hpp"

#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace grid_interpolation_test {

using kernels::Kernel;
using testing::random_matrix;

/// The nodes of a grid, one row each, the first axis fastest.
Matrix grid_points(const std::vector<GridAxis>& axes) {
  Index total = 1;
  for (const auto& axis : axes) total *= axis.nodes;
  Matrix x(total, static_cast<Index>(axes.size()));
  for (Index i = 0; i < total; ++i) {
    Index rest = i;
    for (std::size_t c = 0; c < axes.size(); ++c) {
      x(i, Index(c)) = axes[c].origin + double(rest % axes[c].nodes) * axes[c].step;
      rest /= axes[c].nodes;
    }
  }
  return x;
}

Matrix dense(const linalg::LinearOperator& a) {
  Matrix out(a.size(), a.size());
  a.apply(Matrix::Identity(a.size(), a.size()), out);
  return out;
}

TEST(GridKernel, IsTheKernelMatrixOfItsNodes) {
  const std::vector<std::vector<GridAxis>> grids = {
      {{0.5, 0.1, 40}},
      {{-1, 0.3, 7}, {2, 0.2, 10}},
      {{0, 0.5, 4}, {1, 0.25, 1}, {-3, 0.4, 5}},
      {{0, 0.3, 3}, {0, 0.5, 2}, {1, 1.0, 4}, {0, 0.2, 2}, {0, 0.7, 3}}};
  for (const auto& axes : grids)
    for (const char* text :
         {"rbf", "matern12", "2 * rbf * periodic:iso", "matern32 + 0.5 * rbf:iso", "rq:iso"}) {
      const auto d = static_cast<Index>(axes.size());
      auto kernel = Kernel::parse(text, d);
      kernel.set_all_lengthscales(0.8);
      const GridKernel grid(kernel, axes);
      const Matrix x = grid_points(axes), v = random_matrix(grid.nodes(), 3, 1);
      const Matrix expected = kernel.reference_matrix(x, x) * v;
      Matrix y(grid.nodes(), 3);
      grid.apply(v, y);
      // Rounding of transforms of a few hundred values of size one.
      EXPECT_LE((y - expected).norm(), 1e-12 * v.norm() * double(grid.nodes())) << text << " " << d;
      EXPECT_EQ(grid.kronecker(), separable(kernel));
    }
}

TEST(GridKernel, LongAxesGoThroughTheFourierTransform) {
  const auto kernel = Kernel::parse("rbf", 1);
  const std::vector<GridAxis> axes = {{0, 0.01, 1500}};
  const GridKernel grid(kernel, axes);
  EXPECT_FALSE(grid.kronecker());
  const Matrix x = grid_points(axes), v = random_matrix(1500, 1, 1);
  Matrix y(1500, 1);
  grid.apply(v, y);
  const Matrix expected = kernel.reference_matrix(x, x) * v;
  EXPECT_LE((y - expected).norm(), 1e-12 * expected.norm());
}

TEST(GridKernel, KnowsWhichKernelsAreProducts) {
  EXPECT_TRUE(separable(Kernel::parse("2 * rbf", 3)));
  EXPECT_TRUE(separable(Kernel::parse("matern12 + rq", 1)));
  EXPECT_FALSE(separable(Kernel::parse("matern12", 2)));
  EXPECT_FALSE(separable(Kernel::parse("rbf + rbf:iso", 2)));
  EXPECT_FALSE(separable(Kernel::parse("linear", 1)));
  // What sees one input is a factor of that input, whatever it is.
  EXPECT_TRUE(separable(Kernel::parse("matern32(0) * (matern12(1) + rq(1))", 2)));
  EXPECT_TRUE(separable(Kernel::parse("matern32(1)", 3)));
  EXPECT_FALSE(separable(Kernel::parse("matern32(0,1) * matern12(2)", 3)));
  EXPECT_FALSE(separable(Kernel::parse("matern32(0) + matern12(1)", 2)));
  EXPECT_THROW(GridKernel(Kernel::parse("linear", 1), {{0, 1, 3}}), InvalidArgument);
  EXPECT_THROW(GridKernel(Kernel::parse("rbf", 2), {{0, 1, 3}}), DimensionMismatch);
}

TEST(GridKernel, OfLeavesThatSeeSomeInputs) {
  const std::vector<GridAxis> axes = {{0, 0.5, 4}, {1, 0.25, 3}, {-3, 0.4, 5}};
  const Matrix x = grid_points(axes), v = random_matrix(60, 3, 2);
  for (const char* text : {"matern32(0,1) * matern12(2)", "matern32(0) * matern12(2)", "rq(1)",
                           "rbf(0,1) + periodic(2)"}) {
    const auto kernel = Kernel::parse(text, 3);
    const GridKernel grid(kernel, axes);
    Matrix y(60, 3);
    grid.apply(v, y);
    EXPECT_LE((y - kernel.reference_matrix(x, x) * v).norm(), 1e-12 * v.norm() * 60) << text;
    EXPECT_EQ(grid.kronecker(), separable(kernel)) << text;
  }
}

TEST(GridInterpolation, CubicIsCloseAndSymmetricPositive) {
  for (const Index d : {1, 2, 3}) {
    const Index n = 200;
    const Matrix x = random_matrix(n, d, 2);
    auto kernel = Kernel::parse("rbf:iso", d);
    kernel.set_all_lengthscales(1.5);
    const GridInterpolation k(kernel, x);
    const Matrix approximate = dense(k), exact = kernel.reference_matrix(x, x);
    // The error is that of cubics over a step h: (h / l)^3 and the least resolution is h = l / 4.
    EXPECT_LE((approximate - exact).cwiseAbs().maxCoeff(), d == 3 ? 0.02 : 1e-3) << d;
    EXPECT_LE((approximate - approximate.transpose()).norm(), 1e-12 * exact.norm());
    const Matrix v = random_matrix(n, 1, 3);
    EXPECT_GT(v.col(0).dot(approximate * v.col(0)), 0);
  }
}

TEST(GridInterpolation, AboveFourInputsTheNearestNodeStandsForAPoint) {
  const Index n = 50, d = 5;
  const Matrix x = random_matrix(n, d, 2);
  auto kernel = Kernel::parse("rbf:iso", d);
  kernel.set_all_lengthscales(3);
  const GridInterpolation k(kernel, x);
  Matrix rounded = x;
  for (Index c = 0; c < d; ++c) {
    const auto& axis = k.grid().axes()[std::size_t(c)];
    EXPECT_EQ(axis.nodes, default_axis_nodes(n, d));
    for (Index i = 0; i < n; ++i)
      rounded(i, c) = axis.origin + std::round((x(i, c) - axis.origin) / axis.step) * axis.step;
  }
  // Both are the same kernel at the same places, but for rounding.
  EXPECT_LE((dense(k) - kernel.reference_matrix(rounded, rounded)).norm(), 1e-11);
}

TEST(GridInterpolation, ResolvesLengthscalesWhereThatIsAffordable) {
  const Matrix x = random_matrix(1000, 2, 2);
  auto kernel = Kernel::parse("rbf:iso", 2);
  const auto nodes = [&](double lengthscale) {
    kernel.set_all_lengthscales(lengthscale);
    return GridInterpolation(kernel, x).grid().axes()[0].nodes;
  };
  const Index plain = default_axis_nodes(1000, 2);
  EXPECT_EQ(plain, 178);         // 1000^(3/4)
  EXPECT_LT(nodes(2), plain);    // 32 per lengthscale are enough
  EXPECT_GT(nodes(0.1), plain);  // 4 are needed
  EXPECT_EQ(nodes(1e-5), plain);
}

TEST(GridInterpolation, ConstantColumnsAndOnePoint) {
  for (const Index d : {2, 5}) {
    Matrix x = random_matrix(30, d, 2);
    x.col(1).setConstant(4);
    auto kernel = Kernel::parse("matern32:iso", d);
    kernel.set_all_lengthscales(5);
    EXPECT_TRUE(dense(GridInterpolation(kernel, x)).allFinite());
    // A single point is a node.
    EXPECT_NEAR(dense(GridInterpolation(kernel, x.topRows(1)))(0, 0), 1.0, 1e-12);
  }
}

TEST(GridInterpolation, ThreadsDoNotMatter) {
  const Matrix x = random_matrix(3000, 2, 2), v = random_matrix(3000, 2, 3);
  for (const char* text : {"rbf", "matern32"}) {
    std::vector<Matrix> results;
    for (const int threads : {1, 3}) {
      const testing::WithThreads scope(threads);
      results.emplace_back(3000, 2);
      GridInterpolation(Kernel::parse(text, 2), x).apply(v, results.back());
    }
    EXPECT_TRUE(testing::same_bits(results[0], results[1]));
  }
}

TEST(GridInterpolation, RefusesWithTheReason) {
  EXPECT_NE(grid_refusal(Kernel::parse("rbf + linear", 2), 100, 2).find("differences"),
            std::string::npos);
  EXPECT_NE(grid_refusal(Kernel::parse("matern32", 12), 5000, 12).find("12 inputs"),
            std::string::npos);
  EXPECT_EQ(grid_refusal(Kernel::parse("rbf", 8), 1030, 8), "");
  for (const Index d : {1, 2, 3, 4})
    for (const Index n : {10, 1000, 1000000})
      EXPECT_EQ(grid_refusal(Kernel::parse("matern32", d), n, d), "") << n << " " << d;
  EXPECT_THROW(GridInterpolation(Kernel::parse("poly", 2), Matrix::Ones(3, 2)), InvalidArgument);
}

}  // namespace grid_interpolation_test
}  // namespace mercer::approximations
