// What ULISSE does by chance: unbiased, with the variance of the formula, two copies independent.
//
// Means are tested with 10,000 runs and 64 random projections, each |z| < 4.5. A z of a mean of
// 10,000 is normal but for its third and fourth moments, which matter little at that number:
// P(|z| >= 4.5) = 6.8e-6, so that one test of 64 fails by chance with probability 4.4e-4. Seeds are
// fixed: a test that passes does so every time.
#include "mercer/krylov/ulisse.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "tests/krylov/allocations.hpp"
#include "tests/krylov/preconditioners.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace ulisse_test {

using linalg::DenseOperator;
using testing::random_matrix;
using testing::spd_matrix;

constexpr Index kRuns = 10000, kProjections = 64;

/// Eigenvalues of a smooth kernel matrix with noise: some large, the rest close together.
Matrix kernel_like(Index n, double noise, std::uint64_t seed) {
  Vector eigenvalues(n);
  for (Index i = 0; i < n; ++i) eigenvalues(i) = std::pow(0.75, double(i)) + noise;
  return testing::matrix_with_spectrum(eigenvalues, seed);
}

struct Case {
  Matrix a, b, start;
  const linalg::Preconditioner* preconditioner = nullptr;
  RandomStopOptions rule;
  double tolerance = 1e-9;
  int max_iterations = 1000;

  SolverOptions options() const {
    SolverOptions o;
    o.tolerance = tolerance;
    o.max_iterations = max_iterations;
    o.random_stop = rule;
    return o;
  }
};

/// Runs with streams of their own: moments of projections of both copies.
struct Moments {
  Vector mean1, mean2, square1, square2, cross;  // of projections, about the converged solution
  double variance = 0;                           // of xhat, summed over rows
  double energy_variance = 0, energy_estimate = 0;
  double extra = 0;
  Vector solution;
  SolveResult whole;
};

Moments sample(Case test) {
  const DenseOperator a(test.a);
  const Index n = test.a.rows();
  const SolverContext context{.preconditioner = test.preconditioner};
  Moments m;
  Matrix x = test.start, second;
  auto options = test.options();
  options.random_stop->early_tolerance = test.tolerance;  // conjugate gradients
  m.whole = ulisse(a, test.b, x, options, context);
  m.solution = x.col(0);
  x = test.start;
  options = test.options();
  options.random_stop->whole_run = true;
  m.whole = ulisse(a, test.b, x, options, context);

  const Matrix projections = random_matrix(n, kProjections, 99);
  m.mean1 = m.mean2 = m.square1 = m.square2 = m.cross = Vector::Zero(kProjections);
  for (Index run = 0; run < kRuns; ++run) {
    x = test.start;
    options = test.options();
    options.random_stop->first_stream = static_cast<std::uint64_t>(run);
    const auto result = ulisse_pair(a, test.b, x, second, options, context);
    const Vector error1 = x.col(0) - m.solution, error2 = second.col(0) - m.solution;
    const Vector p1 = projections.transpose() * error1, p2 = projections.transpose() * error2;
    m.mean1 += p1;
    m.mean2 += p2;
    m.square1 += p1.cwiseAbs2();
    m.square2 += p2.cwiseAbs2();
    m.cross += p1.cwiseProduct(p2);
    m.variance += 0.5 * (error1.squaredNorm() + error2.squaredNorm());
    m.energy_variance += 0.5 * (error1.dot(test.a * error1) + error2.dot(test.a * error2));
    m.energy_estimate += result.random_stops[0].energy_variance;
    m.extra += result.random_stops[0].extra_iterations;
  }
  const auto count = static_cast<double>(kRuns);
  for (Vector* v : {&m.mean1, &m.mean2, &m.square1, &m.square2, &m.cross}) *v /= count;
  for (double* v : {&m.variance, &m.energy_variance, &m.energy_estimate, &m.extra}) *v /= count;
  return m;
}

void expect_unbiased_with_the_formula(const Case& test) {
  const auto m = sample(test);
  const auto& report = m.whole.random_stops[0];
  ASSERT_TRUE(report.variance);
  const double root = std::sqrt(static_cast<double>(kRuns));
  EXPECT_LT((m.mean1.cwiseAbs().cwiseQuotient(m.square1.cwiseSqrt()) * root).maxCoeff(), 4.5);
  EXPECT_LT((m.mean2.cwiseAbs().cwiseQuotient(m.square2.cwiseSqrt()) * root).maxCoeff(), 4.5);
  // Of independent copies E[p1 p2] = 0, with standard deviation sqrt(E p1^2 E p2^2 / runs).
  const Vector sd = m.square1.cwiseProduct(m.square2).cwiseSqrt() / root;
  EXPECT_LT(m.cross.cwiseAbs().cwiseQuotient(sd).maxCoeff(), 4.5);
  // 20,000 draws of |error|^2 estimate its mean far better than 15 % as long as no tail is heavy.
  EXPECT_NEAR(m.variance / *report.variance, 1, 0.15);
  EXPECT_NEAR(m.energy_variance / report.energy_variance, 1, 0.15);
  EXPECT_NEAR(m.energy_estimate / report.energy_variance, 1, 0.15);
  EXPECT_FALSE(report.heavy_tail);
  // Of a pair the run goes on to the later stop: sum of 1 - (1 - S)^2. Its standard deviation over
  // runs is below its mean plus two, so 0.05 times that is more than 4.5 standard errors.
  Matrix x = test.start, second;
  auto options = test.options();
  options.random_stop->whole_run = true;
  const auto pair = ulisse_pair(DenseOperator(test.a), test.b, x, second, options,
                                {.preconditioner = test.preconditioner});
  const double expected = pair.random_stops[0].expected_extra_iterations;
  EXPECT_NEAR(m.extra, expected, 0.05 * (expected + 2));
}

TEST(Ulisse, IsUnbiasedWithTheVarianceOfTheFormula) {
  const Case test{kernel_like(40, 0.05, 1), random_matrix(40, 1, 2), Matrix::Zero(40, 1)};
  expect_unbiased_with_the_formula(test);
}

TEST(Ulisse, IsUnbiasedWithAPreconditioner) {
  Vector d(40);
  for (Index i = 0; i < 40; ++i) d(i) = std::pow(10.0, double(i % 5) / 2);
  const Vector root = d.cwiseSqrt();
  const testing::Diagonal p(d);
  const Case test{root.asDiagonal() * kernel_like(40, 0.05, 3) * root.asDiagonal(),
                  random_matrix(40, 1, 4), Matrix::Zero(40, 1), &p};
  expect_unbiased_with_the_formula(test);
}

TEST(Ulisse, IsUnbiasedFromAWarmStart) {
  Case test{kernel_like(40, 0.05, 5), random_matrix(40, 1, 6), Matrix::Zero(40, 1)};
  linalg::Cholesky factor(test.a);
  test.start = test.b;
  factor.solve_in_place(test.start);
  test.start += 0.3 * test.start.norm() / std::sqrt(40.0) * random_matrix(40, 1, 7);
  expect_unbiased_with_the_formula(test);
  test.rule.early_tolerance = 0.9;  // reached by the first guess: draws begin at once
  test.rule.continuation = Continuation::geometric;
  test.rule.beta = 0.15;
  expect_unbiased_with_the_formula(test);
}

TEST(Ulisse, TheGeometricRuleIsUnbiasedWhileBetaIsSmall) {
  Case test{kernel_like(40, 0.1, 8), random_matrix(40, 1, 9), Matrix::Zero(40, 1)};
  test.rule.continuation = Continuation::geometric;
  test.rule.beta = 0.2;
  expect_unbiased_with_the_formula(test);
}

// With few steps left even the rule of the paper is well-behaved.
TEST(Ulisse, TheConditionalRuleIsUnbiasedOverAFewSteps) {
  Case test{kernel_like(40, 0.5, 10), random_matrix(40, 1, 11), Matrix::Zero(40, 1)};
  test.rule.continuation = Continuation::conditional;
  test.rule.beta = 0.1;
  test.tolerance = 1e-5;
  expect_unbiased_with_the_formula(test);
}

TEST(Ulisse, ALimitOfIterationsIsTheEndThatItIsUnbiasedFor) {
  Case test{kernel_like(40, 0.02, 12), random_matrix(40, 1, 13), Matrix::Zero(40, 1)};
  Matrix x = test.start;
  const auto whole = ulisse(DenseOperator(test.a), test.b, x, test.options());
  ASSERT_TRUE(whole.random_stops[0].early_iterations);
  test.max_iterations = *whole.random_stops[0].early_iterations + 4;
  const auto m = sample(test);
  EXPECT_EQ(m.whole.stop, StopReason::iteration_limit);
  // sample() takes conjugate gradients under the same limit as the solution.
  const double root = std::sqrt(static_cast<double>(kRuns));
  EXPECT_LT((m.mean1.cwiseAbs().cwiseQuotient(m.square1.cwiseSqrt()) * root).maxCoeff(), 4.5);
  EXPECT_NEAR(m.variance / *m.whole.random_stops[0].variance, 1, 0.15);
}

TEST(Ulisse, TheFormulaAgreesWithItsDoubleSum) {
  const Matrix a = kernel_like(30, 0.05, 14), b = random_matrix(30, 1, 15);
  SolverOptions options;
  options.tolerance = 1e-10;
  options.random_stop = RandomStopOptions{.early_tolerance = 0.05, .whole_run = true};
  // The iterates, from runs of plain conjugate gradients with more and more iterations.
  std::vector<Vector> iterates;
  Matrix x = Matrix::Zero(30, 1);
  const auto whole = ulisse(DenseOperator(a), b, x, options);
  const auto& report = whole.random_stops[0];
  ASSERT_EQ(whole.stop, StopReason::random_stop);
  const int l0 = *report.early_iterations, steps = report.extra_iterations;
  ASSERT_EQ(l0 + steps, whole.iterations);
  for (int l = l0; l <= l0 + steps; ++l) {
    Matrix y = Matrix::Zero(30, 1);
    cg(DenseOperator(a), b, y, {.tolerance = 1e-15, .max_iterations = l});
    iterates.emplace_back(y.col(0));
  }
  std::vector<double> survival = {1};
  const double first = (b - a * iterates[0]).norm();
  for (int j = 1; j < steps; ++j)
    survival.push_back(
        std::min(survival.back(), (b - a * iterates[static_cast<std::size_t>(j)]).norm() / first));
  double sum = 0, expected = 0;
  for (std::size_t j = 0; j < survival.size(); ++j) {
    expected += survival[j];
    for (std::size_t k = 0; k < survival.size(); ++k)
      sum += (iterates[j + 1] - iterates[j]).dot(iterates[k + 1] - iterates[k]) /
             survival[std::min(j, k)];
  }
  sum -= (iterates.back() - iterates.front()).squaredNorm();
  EXPECT_NEAR(*report.variance, sum, 1e-6 * sum);  // rounding of conjugate gradients near 1e-10
  EXPECT_NEAR(report.expected_extra_iterations, expected, 1e-6 * expected);
}

TEST(Ulisse, SaysRandomStopAndTheResidualThatItHas) {
  const Matrix a = kernel_like(60, 0.01, 16), b = random_matrix(60, 3, 17);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SolverOptions options;
    options.tolerance = 1e-10;
    options.random_stop = RandomStopOptions{.seed = seed};
    Matrix x = Matrix::Zero(60, 3), r;
    const testing::ColumnwiseOperator counted(a);
    const auto result = ulisse(counted, b, x, options, {.residual = &r});
    EXPECT_EQ(result.stop, StopReason::random_stop);
    EXPECT_EQ(result.matvecs, counted.products);
    for (Index j = 0; j < 3; ++j) {
      const double norm = (b.col(j) - a * x.col(j)).norm();
      EXPECT_NEAR(result.residual_norms(j), norm, 1e-12 * b.col(j).norm());
      EXPECT_LE((r.col(j) - (b.col(j) - a * x.col(j))).norm(), 1e-12 * b.col(j).norm());
      EXPECT_GT(norm, 1e-10 * b.col(j).norm());
    }
  }
}

// The mean over draws is where the whole run ends. Products are those of float32, and the first
// residual is too; what the run ends with must nevertheless solve the system in double.
TEST(Ulisse, WithoutMeasuredResidualsTheMeanIsRightInDouble) {
  const Matrix a = kernel_like(60, 0.01, 23), b = random_matrix(60, 3, 24);
  const testing::ColumnwiseOperator high(a);
  const DenseOperator low(Matrix(a.cast<float>().cast<double>()));
  Matrix start = b;
  linalg::Cholesky(a).solve_in_place(start);
  start += 0.1 * random_matrix(60, 3, 25);
  start.col(1).setZero();
  SolverOptions options;
  options.tolerance = 1e-10;
  options.random_stop =
      RandomStopOptions{.seed = 26, .whole_run = true, .measure_residuals = false};
  Matrix x = start, end;
  SolverContext context{.low_precision = &low, .last_iterate = &end};
  ulisse(high, b, x, options, context);
  for (Index j = 0; j < 3; ++j)
    EXPECT_LE((b.col(j) - a * end.col(j)).norm(), 1e-10 * b.col(j).norm()) << j;

  // A run that stops early needs no product with A.
  options.random_stop->whole_run = false;
  options.random_stop->early_tolerance = 0.05;
  x = start;
  const auto before = high.products;
  const auto result = ulisse(high, b, x, options, context);
  EXPECT_EQ(result.stop, StopReason::random_stop);
  EXPECT_EQ(high.products, before);
  EXPECT_EQ(result.low_precision_matvecs, result.matvecs);
  for (Index j = 0; j < 3; ++j)  // reported is the last iterate's, to the rounding of float32
    EXPECT_NEAR(result.residual_norms(j), (b.col(j) - a * end.col(j)).norm(),
                1e-5 * b.col(j).norm());

  // A first guess that solves the system is converged only when A says so.
  x = b;
  linalg::Cholesky(a).solve_in_place(x);
  options.tolerance = 1e-5;
  EXPECT_EQ(ulisse(high, b, x, options, context).stop, StopReason::converged);
  EXPECT_EQ(high.products, before + 3);
}

TEST(Ulisse, ABlockIsItsColumnsBitForBit) {
  const testing::ColumnwiseOperator a(kernel_like(60, 0.01, 18));
  Matrix b = random_matrix(60, 5, 19);
  b.col(2).setZero();
  b.col(4) *= 1e-180;  // scaled inside
  const testing::Diagonal p(Vector::LinSpaced(60, 1.0, 2.0));
  SolverOptions options;
  options.tolerance = 1e-9;
  options.residual_replacement_interval = 7;
  options.random_stop = RandomStopOptions{.seed = 3, .first_stream = 40};
  Matrix x = Matrix::Zero(60, 5), second;
  x.col(1) = random_matrix(60, 1, 20);
  const Matrix start = x;
  const auto block = ulisse_pair(a, b, x, second, options, {.preconditioner = &p});
  for (Index j = 0; j < 5; ++j) {
    Matrix one = start.col(j), other;
    options.random_stop->first_stream = 40 + static_cast<std::uint64_t>(j);
    const auto single = ulisse_pair(a, b.col(j), one, other, options, {.preconditioner = &p});
    EXPECT_TRUE(testing::same_bits(one, x.col(j))) << j;
    EXPECT_TRUE(testing::same_bits(other, second.col(j))) << j;
    EXPECT_EQ(single.iterations, block.column_iterations[static_cast<std::size_t>(j)]);
    EXPECT_EQ(single.stop, block.column_stops[static_cast<std::size_t>(j)]);
  }
}

TEST(Ulisse, SameBitsOnAnyNumberOfThreads) {
  const DenseOperator a(spd_matrix(300, 30, 4));
  const Matrix b = random_matrix(300, 900, 5);  // wide enough for parallel vector updates
  std::vector<Matrix> firsts, seconds;
  for (const int threads : {1, 2, 3}) {
    const testing::WithThreads scope(threads);
    firsts.push_back(Matrix::Zero(300, 900));
    seconds.emplace_back();
    SolverOptions options;
    options.random_stop = RandomStopOptions{.early_tolerance = 0.5};
    ulisse_pair(a, b, firsts.back(), seconds.back(), options);
  }
  for (const std::size_t other : {1u, 2u}) {
    EXPECT_TRUE(testing::same_bits(firsts[0], firsts[other]));
    EXPECT_TRUE(testing::same_bits(seconds[0], seconds[other]));
  }
}

TEST(Ulisse, AWholeRunDrawsWhatAnOrdinaryOneDraws) {
  const DenseOperator a(kernel_like(60, 0.02, 21));
  const Matrix b = random_matrix(60, 4, 22);
  SolverOptions options;
  options.tolerance = 1e-10;
  options.random_stop = RandomStopOptions{};
  Matrix x = Matrix::Zero(60, 4), y = x, z = x, second, other;
  const auto ordinary = ulisse_pair(a, b, x, second, options);
  ulisse(a, b, z, options);
  options.random_stop->whole_run = true;
  const auto whole = ulisse_pair(a, b, y, other, options);
  EXPECT_GT(whole.iterations, ordinary.iterations);
  // What a copy does not take is added to x and taken off again: rounding of x.
  EXPECT_LE((x - y).norm(), 1e-12 * x.norm());
  EXPECT_LE((x - z).norm(), 1e-12 * x.norm());
  EXPECT_LE((second - other).norm(), 1e-12 * x.norm());
  EXPECT_GT((second - x).norm(), 1e-6 * x.norm());
  // Extrapolated from the mean rate of the run so far: an order of magnitude.
  for (std::size_t j = 0; j < 4; ++j) {
    const double exact = whole.random_stops[j].expected_extra_iterations;
    EXPECT_GT(ordinary.random_stops[j].expected_extra_iterations, exact / 4);
    EXPECT_LT(ordinary.random_stops[j].expected_extra_iterations, 4 * exact);
  }
}

// The rule of the paper falls as exp(-beta j^2 / 2), faster than conjugate gradients converge.
TEST(Ulisse, RaisesAFlagWhereTheVarianceExplodes) {
  const DenseOperator a(spd_matrix(150, 1e4, 23));
  const Matrix b = random_matrix(150, 1, 24);
  const auto flagged = [&](Continuation rule, double beta, bool whole, double* variance) {
    SolverOptions options;
    options.tolerance = 1e-10;
    options.random_stop =
        RandomStopOptions{.continuation = rule, .beta = beta, .seed = 2, .whole_run = whole};
    Matrix x = Matrix::Zero(150, 1);
    const auto report = ulisse(a, b, x, options).random_stops[0];
    EXPECT_TRUE(report.early_iterations);
    if (variance != nullptr) *variance = report.energy_variance;
    return report.heavy_tail;
  };
  double sane = 0, paper = 0, steep = 0, gentle = 0;
  EXPECT_FALSE(flagged(Continuation::residual, 0.1, true, &sane));
  EXPECT_TRUE(flagged(Continuation::conditional, 0.1, true, &paper));
  EXPECT_TRUE(flagged(Continuation::geometric, 2.0, true, &steep));
  EXPECT_FALSE(flagged(Continuation::geometric, 0.02, true, &gentle));
  EXPECT_GT(paper, 1e20 * sane);
  EXPECT_GT(steep, 1e6 * sane);
  EXPECT_LT(gentle, 10 * sane);
  // A run that stops early foresees the same.
  EXPECT_FALSE(flagged(Continuation::residual, 0.1, false, nullptr));
  EXPECT_TRUE(flagged(Continuation::conditional, 0.1, false, nullptr));
  EXPECT_TRUE(flagged(Continuation::geometric, 2.0, false, nullptr));
  EXPECT_FALSE(flagged(Continuation::geometric, 0.02, false, nullptr));
}

TEST(Ulisse, LaterIterationsAllocateNothing) {
  const Index n = 200;
  const DenseOperator a(spd_matrix(n, 1e10, 11));
  const testing::Diagonal p(Vector::Ones(n));
  const Matrix b = random_matrix(n, 2, 12);
  SolverOptions options;
  options.tolerance = 1e-14;
  options.max_iterations = 100;
  options.random_stop = RandomStopOptions{
      .early_tolerance = 0.9, .continuation = Continuation::geometric, .beta = 1e-9};
  long first = 0, last = 0;
  Matrix second;
  for (int warm = 0; warm < 2; ++warm) {
    Matrix x = Matrix::Zero(n, 2);
    ulisse_pair(a, b, x, second, options,
                {.preconditioner = &p, .observer = [&](const Iteration& it) {
                   (it.number <= 40 ? first : last) = testing::allocation_count();
                   return Action::proceed;
                 }});
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(first, last);
}

TEST(Ulisse, LowPrecisionProductsLeadToTheSameMean) {
  // Not the statistics again: the whole run, whose x - excess is the converged solution.
  const Matrix a = kernel_like(60, 0.02, 25), b = random_matrix(60, 1, 26);
  const DenseOperator low(a.cast<float>().cast<double>());
  SolverOptions options;
  options.tolerance = 1e-10;
  options.random_stop = RandomStopOptions{.continuation = Continuation::geometric,
                                          .beta = 1e-12};  // every step is taken
  Matrix x = Matrix::Zero(60, 1), expected = b;
  const auto result = ulisse(DenseOperator(a), b, x, options, {.low_precision = &low});
  linalg::Cholesky(a).solve_in_place(expected);
  EXPECT_GT(result.low_precision_matvecs, 0);
  EXPECT_LE((x - expected).norm(), 1e-7 * expected.norm());  // 1e-10 times condition 50
}

TEST(Ulisse, WholeColumnsGoOnToTheTolerance) {
  const testing::ColumnwiseOperator a(kernel_like(60, 0.01, 27));
  const Matrix b = random_matrix(60, 4, 28);
  SolverOptions options;
  options.tolerance = 1e-9;
  options.random_stop = RandomStopOptions{.seed = 4};
  Matrix x = Matrix::Zero(60, 4), y = x, z = x, second, other;
  ulisse_pair(a, b, x, second, options);
  options.random_stop->whole_columns = 2;
  const auto part = ulisse_pair(a, b, y, other, options);
  cg(a, b, z, {.tolerance = 1e-9});
  for (Index j = 0; j < 4; ++j) {
    const auto at = static_cast<std::size_t>(j);
    EXPECT_EQ(part.column_stops[at], j < 2 ? StopReason::converged : StopReason::random_stop);
    EXPECT_TRUE(testing::same_bits(y.col(j), j < 2 ? z.col(j) : x.col(j))) << j;
    EXPECT_TRUE(testing::same_bits(other.col(j), j < 2 ? z.col(j) : second.col(j))) << j;
    EXPECT_EQ(part.random_stops[at].early_iterations.has_value(), j >= 2);
  }
}

TEST(Ulisse, HandsOutTheLastIterateOfTheRun) {
  const testing::ColumnwiseOperator a(kernel_like(60, 0.01, 29));
  Matrix b = random_matrix(60, 3, 30);
  b.col(2) *= 1e-180;  // scaled inside
  SolverOptions options;
  options.tolerance = 1e-9;
  options.random_stop = RandomStopOptions{.early_tolerance = 0.1, .seed = 9};
  Matrix x = Matrix::Zero(60, 3), second, iterate;
  const auto result = ulisse_pair(a, b, x, second, options, {.last_iterate = &iterate});
  for (Index j = 0; j < 3; ++j) {
    // It is that of conjugate gradients after as many iterations.
    Matrix expected = Matrix::Zero(60, 1);
    const int steps = result.column_iterations[static_cast<std::size_t>(j)];
    cg(a, b.col(j), expected, {.tolerance = 1e-15, .max_iterations = steps});
    EXPECT_TRUE(testing::same_bits(iterate.col(j), expected)) << j;
    EXPECT_FALSE(testing::same_bits(x.col(j), expected)) << j;
  }
}

TEST(Ulisse, RefusesWhatOthersTake) {
  const DenseOperator a(spd_matrix(10, 10, 1));
  const Matrix b = random_matrix(10, 1, 2);
  Matrix x = Matrix::Zero(10, 1);
  EXPECT_THROW(ulisse(a, b, x, {.keep_coefficients = true}), InvalidArgument);
  SolverOptions options;
  options.random_stop = RandomStopOptions{.early_tolerance = 1.5};
  EXPECT_THROW(ulisse(a, b, x, options), InvalidArgument);
  options.random_stop = RandomStopOptions{};
  EXPECT_THROW(cg(a, b, x, options), InvalidArgument);
}

}  // namespace ulisse_test
}  // namespace mercer::krylov
