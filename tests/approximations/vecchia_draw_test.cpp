#include "mercer/approximations/vecchia_draw.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "mercer/approximations/vecchia.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::approximations {
namespace vecchia_draw_test {

using kernels::Kernel;

Kernel kernel(std::string_view text, Index d, double lengthscale) {
  auto k = Kernel::parse(text, d);
  k.set_all_lengthscales(lengthscale);
  return k;
}

Matrix uniform(Index n, Index d, std::uint64_t seed) {
  Matrix x(n, d);
  Rng(seed, "test points").fill_uniform(x);
  return x;
}

/// Relative Frobenius distance between the covariance of `draws` draws and the matrix they should
/// have. Its expectation is about sqrt((tr(H)^2 + tr(H^2)) / draws) / |H|_F.
struct CovarianceError {
  double found, expected;
};
CovarianceError covariance_error(const Kernel& k, const Matrix& x, double s2, Index neighbours,
                                 int draws) {
  Matrix h = k.reference_matrix(x, x);
  h.diagonal().array() += s2;
  Matrix sum = Matrix::Zero(x.rows(), x.rows());
  for (int s = 0; s < draws; ++s) {
    const Vector z =
        vecchia_draw(k, x, s2, {.neighbours = neighbours, .seed = static_cast<std::uint64_t>(s)})
            .values;
    sum += z * z.transpose() / draws;
  }
  const double trace = h.trace(), squares = h.squaredNorm();
  return {(sum - h).norm() / h.norm(),
          std::sqrt((trace * trace + squares) / draws) / std::sqrt(squares)};
}

// The variance of the squared Frobenius distance is of the order of its mean squared over the rank,
// so that 1.6 times the expectation is beyond 5 standard deviations for these matrices: a
// false-alarm rate below 1e-6.
TEST(VecchiaDraw, HasTheCovarianceGivenAllEarlierPoints) {
  const Matrix x = uniform(25, 2, 1);
  const auto error = covariance_error(kernel("2 * matern32:iso", 2, 0.2), x, 0.05, 24, 4000);
  EXPECT_LT(error.found, 1.6 * error.expected);
}

TEST(VecchiaDraw, HasTheCovarianceGivenFewNeighbours) {
  const Matrix x = uniform(60, 2, 2);
  const auto error = covariance_error(kernel("matern12:iso", 2, 0.3), x, 1e-6, 20, 4000);
  EXPECT_LT(error.found, 1.6 * error.expected);
}

/// G of the law of a draw, from the definition: rows conditioned on the neighbours that the search
/// finds, in the order of the draw.
Matrix law(const Kernel& k, const Matrix& x, double s2, const VecchiaDrawOptions& options) {
  const Index n = x.rows();
  const auto order = Rng(options.seed, "vecchia draw order").permutation(n);
  Matrix ordered(n, x.cols());
  for (Index i = 0; i < n; ++i) ordered.row(i) = x.row(order[static_cast<std::size_t>(i)]);
  auto search = options.search;
  search.count = options.neighbours;
  const auto neighbours = most_correlated({k, ordered, s2}, search);
  Matrix h = k.reference_matrix(ordered, ordered);
  h.diagonal().array() += s2;
  Matrix g = Matrix::Zero(n, n);  // in the order of the points
  for (Index i = 0; i < n; ++i) {
    std::vector<Index> set(neighbours.of(i).begin(), neighbours.of(i).end());
    set.push_back(i);
    const Matrix r = h(set, set);
    const Vector last = Vector::Unit(r.rows(), r.rows() - 1);
    const Vector row = r.llt().matrixU().solve(last);
    for (std::size_t j = 0; j < set.size(); ++j)
      g(i, order[static_cast<std::size_t>(set[j])]) = row(static_cast<Index>(j));
  }
  return g;  // row i is the i-th conditional
}

TEST(VecchiaDraw, IsTheTriangularSolveOfItsDefinition) {
  const Matrix x = uniform(300, 2, 3);
  for (const auto* text : {"matern52:iso", "rbf:iso + linear:iso", "periodic:iso"}) {
    const auto k = kernel(text, 2, 0.4);
    const VecchiaDrawOptions options{.neighbours = 15, .seed = 5};
    const auto draw = vecchia_draw(k, x, 1e-4, options);
    EXPECT_EQ(draw.neighbours, 15);
    EXPECT_EQ(draw.raised, 0);
    Vector xi(300);
    Rng(5, "vecchia draw").fill_normal(xi);
    // G z = xi; condition numbers of the small matrices are below 16 / 1e-4.
    EXPECT_LT((law(k, x, 1e-4, options) * draw.values - xi).norm() / xi.norm(), 1e-8) << text;
  }
}

/// Kullback-Leibler divergence of the observations y = f + noise, f drawn with s2, from exact ones.
double divergence(const Kernel& k, const Matrix& x, double s2, double noise,
                  const VecchiaDrawOptions& options) {
  const Index n = x.rows();
  const Matrix g = law(k, x, s2, options);
  const Matrix inverse = g.partialPivLu().inverse();
  Matrix approximate = inverse * inverse.transpose();
  approximate.diagonal().array() += noise;
  Matrix exact = k.reference_matrix(x, x);
  exact.diagonal().array() += noise;
  const Eigen::LLT<Matrix> p(exact), q(approximate);
  const auto log_det = [](const Eigen::LLT<Matrix>& l) {
    return 2 * l.matrixLLT().diagonal().array().log().sum();
  };
  return 0.5 * (p.solve(approximate).trace() - double(n) + log_det(p) - log_det(q));
}

// No test can tell the draws from exact ones with an advantage above sqrt(KL / 2) (Pinsker). Bounds
// are a few times what was found; smooth kernels whose lengthscale is a few times the distance of
// the points are the hard case, and without noise f would be told apart.
TEST(VecchiaDraw, ObservationsCanHardlyBeToldFromExactOnes) {
  struct Case {
    const char* kernel;
    double lengthscale, bound;
  };
  const Matrix x = uniform(600, 2, 4);
  for (const auto& c :
       {Case{"matern12:iso", 0.4, 0.01}, Case{"matern52:iso", 0.4, 0.01},
        Case{"matern52:iso", 0.1, 0.02}, Case{"rbf:iso", 0.4, 0.01}, Case{"rbf:iso", 0.06, 2.0},
        Case{"periodic:iso", 2.0, 0.01}, Case{"linear:iso", 0.4, 0.01},
        Case{"poly:2:iso", 0.4, 0.01}, Case{"rbf:iso + linear:iso", 0.4, 0.01},
        Case{"rbf:iso * periodic:iso", 2.0, 0.01},
        Case{"matern32:iso + 0.1 * matern12:iso", 0.4, 0.01}}) {
    const auto k = kernel(c.kernel, 2, c.lengthscale);
    const double s2 = 1e-10 * k.diagonal(x).mean();
    EXPECT_LT(divergence(k, x, s2, 0.01, {.seed = 1}), c.bound) << c.kernel << " " << c.lengthscale;
  }
  // Fewer neighbours are worse: the measure sees a difference.
  EXPECT_GT(divergence(kernel("matern52:iso", 2, 0.1), x, 1e-10, 0.01, {.neighbours = 10}), 0.5);
}

TEST(VecchiaDraw, SameSeedSameBitsOnAnyThreads) {
  const Matrix x = uniform(20000, 2, 6);  // more than one block
  const auto k = kernel("matern32:iso", 2, 0.2);
  const testing::WithThreads one(1);
  const auto alone = vecchia_draw(k, x, 1e-8, {.neighbours = 8, .seed = 3});
  const testing::WithThreads three(3);
  EXPECT_EQ(alone.values, vecchia_draw(k, x, 1e-8, {.neighbours = 8, .seed = 3}).values);
  EXPECT_NE(alone.values, vecchia_draw(k, x, 1e-8, {.neighbours = 8, .seed = 4}).values);
}

TEST(VecchiaDraw, ObserverSeesProgressAndStops) {
  const Matrix x = uniform(20000, 1, 7);
  const auto k = kernel("matern12:iso", 1, 0.2);
  std::vector<Index> seen;
  vecchia_draw(k, x, 1e-6, {.neighbours = 2}, [&](Index drawn) {
    seen.push_back(drawn);
    return Action::proceed;
  });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.front(), 0);
  EXPECT_LT(seen[1], seen[2]);
  EXPECT_THROW(vecchia_draw(k, x, 1e-6, {.neighbours = 2}, [](Index) { return Action::stop; }),
               Interrupted);
}

TEST(VecchiaDraw, EqualPointsAndFewPoints) {
  const auto k = kernel("rbf:iso", 1, 1);
  const Matrix same = Matrix::Constant(200, 1, 0.5);
  const auto draw = vecchia_draw(k, same, 1e-10, {.neighbours = 30, .seed = 2});
  // All values are the same but for the square root of s2.
  EXPECT_LT(draw.values.maxCoeff() - draw.values.minCoeff(), 1e-4);
  EXPECT_EQ(vecchia_draw(k, Matrix::Zero(1, 1), 0.1).values.size(), 1);
  EXPECT_EQ(vecchia_draw(k, Matrix::Zero(0, 1), 0.1).values.size(), 0);
  EXPECT_THROW(vecchia_draw(k, same, 0.0), InvalidArgument);
  EXPECT_THROW(vecchia_draw(k, same, 0.1, {.neighbours = 0}), InvalidArgument);
}

}  // namespace vecchia_draw_test
}  // namespace mercer::approximations
