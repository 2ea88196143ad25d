// Laplace's approximation with functions that are coupled in a row, against dense algebra on
// matrices of N C rows, and against the logit of two classes. The laws over all likelihoods are in
// laplace_test.cpp.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/inference/laplace/laplace_gradient.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "tests/testing/laplace_problems.hpp"

namespace mercer::inference {
namespace softmax_test {

Observations make_data(Index n, Index classes) {
  Observations out{Matrix(n, 2), Matrix(n, classes), Vector::Zero(classes)};
  Rng rng(21, "softmax data");
  rng.fill_normal(out.x);
  Matrix f(n, classes);
  for (Index j = 0; j < classes; ++j)
    for (Index i = 0; i < n; ++i)
      f(i, j) = std::sin(2 * out.x(i, 0) + 2.0 * static_cast<double>(j)) + 0.4 * out.x(i, 1);
  out.y = testing::observe_all(*likelihoods::make("softmax"), f, rng);
  return out;
}

Problem make_problem(const std::string& likelihood = "softmax", double variance = 3.0) {
  Problem problem(kernels::Kernel::parse("matern52:iso", 2), likelihoods::make(likelihood));
  problem.kernel.set_all_variances(variance);
  return problem;
}

NewtonOptions tight() { return {.tolerance = 1e-10, .solve_tolerance = 1e-6}; }

SystemChoice iterative(const std::string& preconditioner) {
  SystemChoice choice;
  choice.solver = "cg";
  choice.preconditioner = preconditioner;
  return choice;
}

// K of all functions, stacked.
Matrix stacked_kernel(const Matrix& k, Index c) {
  Matrix out = Matrix::Zero(k.rows() * c, k.rows() * c);
  for (Index j = 0; j < c; ++j) out.block(j * k.rows(), j * k.rows(), k.rows(), k.rows()) = k;
  return out;
}

// W of all functions, stacked, entry by entry from the formula.
Matrix stacked_curvature(const Matrix& w) {
  const Index n = w.rows(), c = w.cols();
  Matrix out = Matrix::Zero(n * c, n * c);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < c; ++j)
      for (Index d = 0; d < c; ++d)
        out(j * n + i, d * n + i) = (j == d ? w(i, j) : 0) - w(i, j) * w(i, d) / w.row(i).sum();
  return out;
}

Matrix random_weights(Index n, Index c) {
  Matrix w(n, c);
  Rng(4, "weights").fill_normal(w);
  w = (3 * w).array().exp();
  for (Index i = 0; i < n; ++i) w.row(i) *= static_cast<double>(1 + i % 3) / w.row(i).sum();
  return w;
}

Vector stack(const Matrix& m) { return Eigen::Map<const Vector>(m.data(), m.size()); }

TEST(Softmax, ModeAndEvidenceAreThoseOfDenseAlgebra) {
  for (const Index c : {2, 3, 5}) {
    SCOPED_TRACE(c);
    const auto data = make_data(40, c);
    const auto problem = make_problem();
    const auto evidence = exact_laplace(problem, data, false, tight());
    const Matrix k = problem.kernel.reference_matrix(data.x, data.x), big = stacked_kernel(k, c);
    // Newton's method as in a textbook, with whole steps: f = (K^-1 + W)^-1 (W f + y - p), written
    // without K^-1.
    Vector f = Vector::Zero(40 * c);
    Matrix p(40, c);
    Matrix w;
    for (int step = 0; step < 60; ++step) {
      const Eigen::Map<const Matrix> rows(f.data(), 40, c);
      p = rows.array().exp();
      p.array().colwise() /= p.rowwise().sum().array();
      w = stacked_curvature(p);
      const Vector b = w * f + stack(data.y - p);
      const Matrix left = Matrix::Identity(40 * c, 40 * c) + w * big;
      f = big * left.partialPivLu().solve(b);
    }
    const Vector a = stack(data.y - p);
    EXPECT_LT((stack(evidence.mode.f) - f).cwiseAbs().maxCoeff(), 1e-8);
    EXPECT_LT((stack(evidence.mode.a) - a).cwiseAbs().maxCoeff(), 1e-8);
    const Matrix left = Matrix::Identity(40 * c, 40 * c) + w * big;
    const double expected = (p.array().log() * data.y.array()).sum() - 0.5 * a.dot(f) -
                            0.5 * std::log(left.determinant());
    EXPECT_NEAR(evidence.value, expected, 1e-9 * std::abs(expected));
  }
}

TEST(Softmax, FactorsOfBlocksAreThoseOfB) {
  const auto data = make_data(30, 4);
  const auto problem = make_problem();
  const Matrix k = problem.kernel.reference_matrix(data.x, data.x);
  const Matrix w = random_weights(30, 4);
  const CurvatureRoot root({w, true}, 30);
  // The root itself, from its action.
  Matrix r(120, 120);
  for (Index j = 0; j < 120; ++j) {
    const Vector unit = Vector::Unit(120, j);
    r.col(j) = stack(root.times(Eigen::Map<const Matrix>(unit.data(), 30, 4)));
    const Vector back = stack(root.transposed_times(Eigen::Map<const Matrix>(unit.data(), 30, 4)));
    for (Index i = 0; i < j; ++i) EXPECT_NEAR(back(i), r(j, i), 1e-15);
  }
  EXPECT_LT((r * r.transpose() - stacked_curvature(w)).cwiseAbs().maxCoeff(), 1e-15 * 10);
  for (Index c = 0; c < 4; ++c)
    for (Index d = 0; d < 4; ++d)
      EXPECT_LT(
          (root.block(c, d) - Vector(stacked_curvature(w).block(c * 30, d * 30, 30, 30).diagonal()))
              .cwiseAbs()
              .maxCoeff(),
          1e-15 * 10);

  const Matrix b = Matrix::Identity(120, 120) + r.transpose() * stacked_kernel(k, 4) * r;
  const CurvedFactor factor(k, root, nullptr);
  Matrix right(120, 3), solved(120, 3), product(120, 3);
  Rng(5, "right").fill_normal(right);
  factor.solve(right, solved);
  // |B| is below 1 + 3 x 30 x 3: conditions of 300, 2 or 3 digits.
  EXPECT_LT((b * solved - right).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_NEAR(factor.log_det(), 2 * Matrix(b.llt().matrixL()).diagonal().array().log().sum(),
              1e-11);
  const linalg::DenseOperator dense_k(k);
  CurvedOperator(dense_k, root).apply(right, product);
  EXPECT_LT((b * right - product).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_EQ(factor.count(), 5);
}

// A preconditioner of full rank is B itself; of a lower rank it keeps the laws of a preconditioner.
TEST(Softmax, TheLowRankPreconditionerIsOne) {
  const auto data = make_data(40, 3);
  const auto problem = make_problem();
  const Matrix k = problem.kernel.reference_matrix(data.x, data.x);
  const Matrix lower = Matrix(k.llt().matrixL());
  const CurvatureRoot root({random_weights(40, 3), true}, 40);
  for (const Index rank : {40, 7}) {
    SCOPED_TRACE(rank);
    const Matrix f = lower.leftCols(rank), ff = f * f.transpose();
    const CoupledLowRank p(lower, rank, root);
    const linalg::DenseOperator low(ff);
    const CurvedOperator expected(low, root);
    const Matrix unit = Matrix::Identity(120, 120);
    Matrix dense(120, 120), solved(120, 120);
    expected.apply(unit, dense);
    p.solve(dense, solved);
    EXPECT_LT((solved - unit).cwiseAbs().maxCoeff(), 1e-11);
    EXPECT_NEAR(p.log_det(), 2 * Matrix(dense.llt().matrixL()).diagonal().array().log().sum(),
                1e-10);
    // The covariance of 20,000 samples, in the relative Frobenius norm: three times its deviation.
    const Index count = 20000;
    Matrix draws(120, count);
    Rng rng(6, "draws");
    p.sample(rng, draws);
    const Matrix covariance = draws * draws.transpose() / static_cast<double>(count);
    EXPECT_LT((covariance - dense).norm(),
              3 * std::sqrt(120.0 / static_cast<double>(count)) * dense.norm());
  }
  const CurvedFactor factor(k, root, nullptr);
  const linalg::DenseOperator whole(k);
  Matrix b(120, 120), draws(120, 20000);
  CurvedOperator(whole, root).apply(Matrix::Identity(120, 120), b);
  Rng rng(7, "draws");
  factor.sample(rng, draws);
  EXPECT_LT((draws * draws.transpose() / 20000 - b).norm(),
            3 * std::sqrt(120.0 / 20000) * b.norm());
}

// k'R B^-1 R'k of every pair of functions = k'(K + W^-1)^-1 k, by W - W (K^-1 + W)^-1 W.
TEST(Softmax, WhatIsExplainedIsThatOfDenseAlgebra) {
  const Index n = 50, c = 3, m = 4;
  const auto data = make_data(n, c);
  const auto problem = make_problem();
  const auto mode = exact_laplace(problem, data, false, tight()).mode;
  const Matrix k = problem.kernel.reference_matrix(data.x, data.x), big = stacked_kernel(k, c);
  Matrix at(m, 2);
  Rng(8, "new points").fill_normal(at);
  const Matrix cross = problem.kernel.reference_matrix(data.x, at);
  const Matrix w = stacked_curvature(mode.w);
  const Matrix q = (Matrix::Identity(n * c, n * c) + w * big).partialPivLu().solve(w);
  DenseLaplaceSystem dense(problem.kernel, data.x);
  IterativeLaplaceSystem solves(problem.kernel, data.x, iterative("auto"));
  dense.set_curvature({mode.w, true});
  solves.set_curvature({mode.w, true});
  const auto direct = dense.explained(cross, 0), loose = solves.explained(cross, 1e-3);
  for (Index j = 0; j < c; ++j)
    for (Index d = 0; d < c; ++d)
      for (Index p = 0; p < m; ++p) {
        const double expected = cross.col(p).dot(q.block(j * n, d * n, n, n) * cross.col(p));
        EXPECT_NEAR(direct.blocks(p, j + c * d), expected, 1e-11);
        // Off by r'B^-1 r at most, which the bound of the diagonal is about.
        const double bound = std::sqrt(loose.truncated(p, j) * loose.truncated(p, d));
        EXPECT_NEAR(loose.blocks(p, j + c * d), expected, bound + 1e-11);
        EXPECT_LT(bound, 1e-4);
      }
}

// f_2 - f_1 of two functions with variance v is one function with variance 2 v.
TEST(Softmax, TwoClassesAreTheLogitWithTwiceTheVariance) {
  const auto data = make_data(60, 2);
  Observations one{data.x, data.y.col(1), Vector::Zero(1)};
  const auto coupled = exact_laplace(make_problem("softmax", 1.5), data, true, tight());
  const auto logit = exact_laplace(make_problem("bernoulli-logit", 3.0), one, true, tight());
  const Vector difference = coupled.mode.f.col(1) - coupled.mode.f.col(0);
  EXPECT_LT((difference - logit.mode.f.col(0)).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_NEAR(coupled.value, logit.value, 1e-10 * std::abs(logit.value));
  EXPECT_LT((coupled.gradient - logit.gradient).cwiseAbs().maxCoeff(), 1e-8);

  Matrix at(5, 2);
  Rng(9, "new points").fill_normal(at);
  const auto first = make_problem("softmax", 1.5), second = make_problem("bernoulli-logit", 3.0);
  DenseLaplaceSystem two(first.kernel, data.x), single(second.kernel, data.x);
  two.set_curvature({coupled.mode.w, true});
  single.set_curvature(logit.mode.w);
  const auto both = two.explained(first.kernel.reference_matrix(data.x, at), 0).blocks;
  const auto alone = single.explained(second.kernel.reference_matrix(data.x, at), 0).blocks;
  for (Index p = 0; p < 5; ++p)
    EXPECT_NEAR(both(p, 0) + both(p, 3) - both(p, 1) - both(p, 2), alone(p, 0), 1e-10);
}

TEST(Softmax, TheBoundHoldsForEveryFunctionAtEveryTolerance) {
  const auto data = make_data(80, 3);
  const auto problem = make_problem();
  const auto exact = exact_laplace(problem, data, false, tight());
  Matrix elsewhere(50, 2);
  Rng(3, "elsewhere").fill_normal(elsewhere);
  const Matrix cross = problem.kernel.reference_matrix(elsewhere, data.x);
  const Vector prior = problem.kernel.diagonal(elsewhere);
  for (const double tolerance : {3.0, 0.3, 1e-2, 1e-4}) {
    IterativeLaplaceSystem system(problem.kernel, data.x, iterative("none"));
    const auto mode =
        find_mode(problem, data, system, {}, {.tolerance = tolerance, .solve_tolerance = 0.3});
    ASSERT_EQ(mode.residual.size(), 3);
    const Matrix error = (cross * (mode.a - exact.mode.a)).cwiseAbs();
    // The sum over the functions, not the function's own: they pull at each other.
    const Matrix r = mode_slopes(problem, data, mode).gradient - mode.a;
    const Matrix k = problem.kernel.reference_matrix(data.x, data.x);
    EXPECT_NEAR(mode.residual(0), std::sqrt((r.array() * (k * r).array()).sum()),
                1e-6 * mode.residual(0) + 1e-12);
    for (Index j = 0; j < 3; ++j)
      for (Index i = 0; i < 50; ++i)
        EXPECT_LE(error(i, j), std::sqrt(prior(i)) * mode.residual(j) * (1 + 1e-9) + 1e-10);
  }
}

TEST(Softmax, LanczosQuadratureKnowsTheLogDeterminant) {
  const auto data = make_data(120, 3);
  const auto problem = make_problem();
  DenseLaplaceSystem dense(problem.kernel, data.x);
  const auto mode = find_mode(problem, data, dense, {}, tight());
  IterativeLaplaceSystem system(problem.kernel, data.x, iterative("auto"));
  system.set_curvature({mode.w, true});
  const auto estimate = system.log_determinant({.probes = 30, .tolerance = 1e-6});
  ASSERT_EQ(estimate.reason, "");
  // |t| < 4.5 with 29 degrees of freedom: a false alarm in 10,000.
  EXPECT_NEAR(estimate.estimate.value, dense.log_det(), 4.5 * estimate.estimate.probe_error + 1e-3);
}

TEST(Softmax, ClassesThatCanBeSeparatedStayFinite) {
  auto data = make_data(60, 3);
  data.y.setZero();
  for (Index i = 0; i < 60; ++i)
    data.y(i, data.x(i, 0) > 0.5 ? 2 : data.x(i, 0) > -0.5 ? 1 : 0) = 1;
  for (const double variance : {100.0, 1e6}) {
    auto problem = make_problem("softmax", variance);
    problem.kernel.set_all_lengthscales(5);
    const auto evidence = exact_laplace(problem, data, true);
    EXPECT_TRUE(std::isfinite(evidence.value));
    EXPECT_TRUE(evidence.gradient.allFinite());
    EXPECT_TRUE(evidence.mode.f.allFinite());
    EXPECT_LE(evidence.value, 0);
  }
}

// A class that no row has still has a function, and a row that nothing is known of no direction.
TEST(Softmax, EmptyClassesAndRowsWithoutCurvature) {
  auto data = make_data(30, 3);
  data.y.col(0) += data.y.col(2);
  data.y.col(2).setZero();
  const auto evidence = exact_laplace(make_problem(), data, true, tight());
  EXPECT_TRUE(evidence.gradient.allFinite());
  EXPECT_LT(evidence.mode.a.col(2).maxCoeff(), 0);

  Matrix w = random_weights(30, 3);
  w.row(7).setZero();
  const auto problem = make_problem();
  DenseLaplaceSystem system(problem.kernel, data.x);
  system.set_curvature({w, true});
  Matrix b(90, 1), x(90, 1), back(90, 1);
  Rng(10, "right").fill_normal(b);
  system.solve(b, x, 0);
  const linalg::DenseOperator k(problem.kernel.reference_matrix(data.x, data.x));
  CurvedOperator(k, system.root()).apply(x, back);
  EXPECT_LT((back - b).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(Softmax, FlopsAndBytesGrowWithTheFunctions) {
  EXPECT_GT(exact_laplace_bytes(100, {5, true}), exact_laplace_bytes(100, 5));
  EXPECT_GT(exact_laplace_flops(100, {5, true}), exact_laplace_flops(100, 5));
  // Far below one matrix of N C rows.
  EXPECT_LT(exact_laplace_bytes(100, {10, true}), 8.0 * 1000 * 1000);
}

}  // namespace softmax_test
}  // namespace mercer::inference
