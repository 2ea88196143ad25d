// Every solver over rows that two ranks share: the laws of registry_test.cpp that could break, and
// those that only ranks have. The ranks are threads (tests/testing/two_ranks.hpp), which throw
// instead of waiting for ever when they take different branches.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/krylov/kernel_cg.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "tests/krylov/laws.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/two_ranks.hpp"

namespace mercer::krylov {
namespace ranks_test {

using linalg::RowSpace;
using testing::random_matrix;
using testing::rows_of;
using testing::same_bits;
using testing::spd_matrix;
using testing::SplitDenseOperator;

/// P = D, of the rows held here; optionally it gives what is not a number, on one rank only.
class SplitDiagonal final : public linalg::Preconditioner {
 public:
  SplitDiagonal(const Vector& all, const RowSpace& space, int nan_from = 0)
      : space_(space), d_(rows_of(space, all)), nan_from_(nan_from) {}
  Index size() const override { return d_.size(); }
  RowSpace row_space() const override { return space_; }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = d_.cwiseInverse().asDiagonal() * r;
    if (++calls_ == nan_from_ && space_.begin() == 0)
      z(0, 0) = std::numeric_limits<double>::quiet_NaN();
  }
  double log_det() const override { return space_.sum(d_.array().log().sum()); }
  void sample(Rng& rng, MatrixView z) const override { linalg::fill_normal(rng, space_, z); }

 private:
  RowSpace space_;
  Vector d_;
  int nan_from_;
  mutable int calls_ = 0;
};

/// A system, how it is split and what is made of it on each rank.
struct Problem {
  Matrix a, b, x;
  SolverOptions options = {};
  std::optional<Vector> diagonal = {};       // of a preconditioner
  int nan_from = 0;                          // call at which the preconditioner fails on rank 0
  std::optional<Matrix> low_precision = {};  // instead of A
  Observer observer = {};
  bool only_second_observes = false;
  std::optional<Index> cut = {};  // rows of the first rank; a third when unset
};

struct Solved {
  SolveResult results[2];
  Matrix x, residual;  // of all rows
  long reductions = 0;
  const SolveResult& operator*() const { return results[0]; }
  const SolveResult* operator->() const { return &results[0]; }
};

SolveResult solve_part(const SolverInfo& info, const Problem& p, const RowSpace& space, Matrix& x,
                       Matrix& residual) {
  const SplitDenseOperator a(p.a, space);
  SolverContext context;
  std::optional<SplitDiagonal> diagonal;
  std::optional<SplitDenseOperator> low;
  if (p.diagonal) context.preconditioner = &diagonal.emplace(*p.diagonal, space, p.nan_from);
  if (p.low_precision) context.low_precision = &low.emplace(*p.low_precision, space);
  if (!p.only_second_observes || space.begin() > 0) context.observer = p.observer;
  context.residual = &residual;
  x = rows_of(space, p.x);
  return testing::solve_without_draws(info, a, rows_of(space, p.b), x, p.options, context);
}

Solved solve_one(const SolverInfo& info, const Problem& p) {
  Solved out;
  out.results[0] = out.results[1] =
      solve_part(info, p, RowSpace::local(p.a.rows()), out.x, out.residual);
  return out;
}

void expect_same_report(const SolveResult& a, const SolveResult& b) {
  EXPECT_EQ(a.stop, b.stop);
  EXPECT_EQ(a.column_stops, b.column_stops);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.column_iterations, b.column_iterations);
  EXPECT_EQ(a.matvecs, b.matvecs);
  EXPECT_EQ(a.low_precision_matvecs, b.low_precision_matvecs);
  EXPECT_EQ(a.restarts, b.restarts);
  EXPECT_EQ(a.fell_back_to_double, b.fell_back_to_double);
  EXPECT_TRUE(same_bits(a.residual_norms, b.residual_norms));
  EXPECT_TRUE(same_bits(a.column_residuals, b.column_residuals));
  ASSERT_EQ(a.residuals.rows(), b.residuals.rows());
  for (Index i = 0; i < a.residuals.rows(); ++i)
    for (Index j = 0; j < a.residuals.columns(); ++j)
      EXPECT_EQ(a.residuals(i, j), b.residuals(i, j));
}

/// Both ranks' reports are the same, and so is the whole answer that they hold parts of.
Solved solve_two(const SolverInfo& info, const Problem& p) {
  Solved out;
  const Index n = p.a.rows(), cut = p.cut.value_or(n / 3);
  out.x = out.residual = Matrix::Zero(n, p.b.cols());
  out.reductions = testing::on_two_ranks(n, cut, [&](const RowSpace& space) {
    Matrix x, residual;
    const int rank = space.end() < n || (space.begin() == 0 && cut == n) ? 0 : 1;
    out.results[rank] = solve_part(info, p, space, x, residual);
    out.x.middleRows(space.begin(), space.size()) = x;
    out.residual.middleRows(space.begin(), space.size()) = residual;
  });
  expect_same_report(out.results[0], out.results[1]);
  for (Index j = 0; j < p.b.cols(); ++j) {
    const Vector r = p.b.col(j) - p.a * out.x.col(j);
    // Two ways to sum A x differ by rounding.
    const double rounding =
        1e-14 * (p.b.col(j).stableNorm() + p.a.norm() * out.x.col(j).stableNorm());
    const double norm = r.stableNorm();
    EXPECT_NEAR(out->residual_norms(j), norm, 1e-6 * norm + rounding);
    EXPECT_LE((out.residual.col(j) - r).stableNorm(), 1e-6 * norm + 10 * rounding);
  }
  return out;
}

class SolversOverRanks : public ::testing::TestWithParam<SolverInfo> {
 protected:
  Solved one(const Problem& p) { return solve_one(GetParam(), p); }
  Solved two(const Problem& p) { return solve_two(GetParam(), p); }
};

TEST_P(SolversOverRanks, TakeTheSameIterationsToTheSameAnswer) {
  // So well conditioned that rounding does not grow: a hundred iterations of a Krylov method
  // forget the bits that they began with.
  const Index n = 60;
  Problem p{.a = spd_matrix(n, 10, 1), .b = random_matrix(n, 3, 2), .x = Matrix::Zero(n, 3)};
  p.options.tolerance = 1e-8;
  p.options.residual_replacement_interval = 7;
  Matrix expected = p.b;
  linalg::Cholesky(p.a).solve_in_place(expected);
  const Vector d = Vector::LinSpaced(n, 1, 3);
  for (const bool preconditioned : {false, true})
    for (const Index cut : {n / 3, Index{1}, Index{0}, n}) {
      if (preconditioned) p.diagonal = d;
      p.cut = cut;
      const auto alone = one(p), shared = two(p);
      EXPECT_TRUE(shared->converged());
      EXPECT_EQ(shared->column_iterations, alone->column_iterations) << cut;
      EXPECT_EQ(shared->matvecs, alone->matvecs) << cut;
      // Residual 1e-8 times condition 10.
      EXPECT_LE((shared.x - expected).norm(), 1e-7 * expected.norm());
      ASSERT_EQ(shared->residuals.rows(), alone->residuals.rows());
      for (Index i = 0; i < alone->residuals.rows(); ++i)
        for (Index j = 0; j < 3; ++j)
          EXPECT_NEAR(shared->residuals(i, j), alone->residuals(i, j),
                      1e-5 * alone->residuals(i, j) + 1e-14);
    }
}

TEST_P(SolversOverRanks, StopByTheSameDraw) {
  if (!GetParam().unbiased) GTEST_SKIP();
  Problem p{testing::spd_matrix(90, 30, 1), random_matrix(90, 3, 2), Matrix::Zero(90, 3)};
  p.options.tolerance = 1e-6;
  p.options.random_stop = RandomStopOptions{.whole_run = true};
  const auto alone = one(p), shared = two(p);
  EXPECT_EQ(shared->stop, StopReason::random_stop);
  EXPECT_EQ(shared->column_iterations, alone->column_iterations);
  // An easy system: in hard ones rounding soon leads to another path.
  EXPECT_LE((shared.x - alone.x).norm(), 1e-9 * alone.x.norm());
  for (std::size_t j = 0; j < 3; ++j)
    EXPECT_NEAR(*shared->random_stops[j].variance / *alone->random_stops[j].variance, 1, 1e-6);
}

TEST_P(SolversOverRanks, ToleranceByRowsCountsAllRows) {
  const Index n = 60;
  Problem p{.a = spd_matrix(n, 10, 3), .b = random_matrix(n, 1, 4), .x = Matrix::Zero(n, 1)};
  p.options.rms_tolerance = 1e-6;
  const auto alone = one(p), shared = two(p);
  EXPECT_TRUE(shared->converged());
  EXPECT_EQ(shared->iterations, alone->iterations);
}

TEST_P(SolversOverRanks, ZeroOnOneRankIsNotZero) {
  const Index n = 30;
  Problem p{.a = spd_matrix(n, 10, 1), .b = Matrix::Zero(n, 3), .x = Matrix::Zero(n, 3)};
  p.b(n - 1, 1) = 1;       // only the second rank sees a right-hand side
  p.b(n - 1, 2) = 1e-180;  // its squares vanish
  p.x(0, 0) = 1;           // only the first rank sees a guess, for the solution 0
  p.x(0, 1) = 1;
  const auto shared = two(p);
  EXPECT_TRUE(shared->converged());
  EXPECT_EQ(shared.x.col(0).norm(), 0.0);
  EXPECT_EQ(shared->column_iterations[0], 0);
  EXPECT_GT(shared->column_iterations[1], 0);
  EXPECT_GT(shared->column_iterations[2], 0);
}

TEST_P(SolversOverRanks, ExactFirstGuessTakesNoIteration) {
  const Index n = 30;
  const Matrix a = spd_matrix(n, 10, 1), x = random_matrix(n, 2, 2);
  const auto shared = two({.a = a, .b = a * x, .x = x});
  EXPECT_TRUE(shared->converged());
  EXPECT_EQ(shared->iterations, 0);
}

TEST_P(SolversOverRanks, TheLimitIsReachedTogether) {
  const Index n = 60;
  const auto shared = two({.a = spd_matrix(n, 1e6, 1),
                           .b = random_matrix(n, 2, 2),
                           .x = Matrix::Zero(n, 2),
                           .options = {.tolerance = 1e-10, .max_iterations = 5}});
  EXPECT_EQ(shared->stop, StopReason::iteration_limit);
  EXPECT_EQ(shared->iterations, 5);
}

TEST_P(SolversOverRanks, AnObserverOfOneRankStopsBoth) {
  const Index n = 60;
  Problem p{.a = spd_matrix(n, 1e6, 1), .b = random_matrix(n, 2, 2), .x = Matrix::Zero(n, 2)};
  p.options.tolerance = 1e-12;
  p.observer = [](const Iteration& it) { return it.number == 4 ? Action::stop : Action::proceed; };
  for (const bool only_second : {false, true}) {
    p.only_second_observes = only_second;
    const auto shared = two(p);
    EXPECT_EQ(shared->stop, StopReason::interrupted);
    EXPECT_EQ(shared->iterations, 4);
  }
}

TEST_P(SolversOverRanks, BreakdownsAreCommon) {
  const Index n = 40;
  const Matrix b = random_matrix(n, 1, 2), x = Matrix::Zero(n, 1);
  EXPECT_EQ(two({.a = Matrix::Zero(n, n), .b = b, .x = x})->stop, StopReason::breakdown);
  if (GetParam().needs_positive_definite) {
    Vector eigenvalues = Vector::LinSpaced(n, 1.0, 2.0);
    eigenvalues.head(n / 2) *= -1;
    const auto shared = two({.a = testing::matrix_with_spectrum(eigenvalues, 1), .b = b, .x = x});
    EXPECT_EQ(shared->stop, StopReason::breakdown);
    EXPECT_TRUE(shared.x.allFinite());
  }
  for (const int call : {1, 2, 5}) {
    Problem p{.a = spd_matrix(n, 1e4, 1), .b = b, .x = x};
    p.options.tolerance = 1e-13;
    p.diagonal = Vector::Ones(n);
    p.nan_from = call;
    const auto shared = two(p);
    EXPECT_EQ(shared->stop, StopReason::breakdown) << call;
    EXPECT_TRUE(shared.x.allFinite());
  }
}

TEST_P(SolversOverRanks, ConditionOfAnInverseEpsilonStopsTogether) {
  const Index n = 60;
  const auto shared = two({.a = spd_matrix(n, 1e16, 5),
                           .b = random_matrix(n, 1, 6),
                           .x = Matrix::Zero(n, 1),
                           .options = {.tolerance = 1e-8, .max_iterations = 1500}});
  EXPECT_TRUE(shared.x.allFinite());
}

TEST_P(SolversOverRanks, LowPrecisionProductsAreSharedToo) {
  if (!GetParam().takes_low_precision) GTEST_SKIP();
  const Index n = 60;
  Problem p{.a = spd_matrix(n, 1e2, 1), .b = random_matrix(n, 2, 2), .x = Matrix::Zero(n, 2)};
  p.options = {.tolerance = 1e-11, .max_iterations = 3000};
  p.low_precision = p.a.cast<float>().cast<double>();
  const auto shared = two(p);
  EXPECT_TRUE(shared->converged());
  EXPECT_FALSE(shared->fell_back_to_double);
  EXPECT_GT(shared->low_precision_matvecs, shared->matvecs / 2);
  p.low_precision = spd_matrix(n, 100, 8);
  const auto wrong = two(p);
  EXPECT_TRUE(wrong->fell_back_to_double);
  EXPECT_TRUE(wrong->converged());
}

TEST_P(SolversOverRanks, WhatOneRankRefusesNoRankWaitsFor) {
  const Index n = 20;
  const Matrix a = spd_matrix(n, 10, 1);
  int refused = 0, told = 0;
  std::mutex mutex;
  const auto attempt = [&](const auto& solve_on) {
    refused = told = 0;
    testing::on_two_ranks(n, n / 2, [&](const RowSpace& space) {
      const SplitDenseOperator mine(a, space);
      try {
        solve_on(mine, space);
      } catch (const InvalidArgument&) {
        const std::lock_guard lock(mutex);
        ++refused;
      } catch (const Error&) {
        const std::lock_guard lock(mutex);
        ++told;
      }
    });
  };
  const auto solve = [&](const SplitDenseOperator& mine, const Matrix& b,
                         const SolverContext& context = {}) {
    Matrix x = Matrix::Zero(b.rows(), b.cols());
    GetParam().solve(mine, b, x, {}, context);
  };
  attempt([&](const SplitDenseOperator& mine, const RowSpace& space) {
    Matrix b = rows_of(space, random_matrix(n, 1, 2));
    if (space.begin() == 0) b(0, 0) = std::numeric_limits<double>::quiet_NaN();
    solve(mine, b);
  });
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(told, 1);
  attempt([&](const SplitDenseOperator& mine, const RowSpace& space) {
    solve(mine, rows_of(space, random_matrix(n, space.begin() == 0 ? 1 : 2, 2)));
  });
  EXPECT_EQ(refused, 2);
  // A preconditioner that does not know of other ranks would precondition another matrix.
  attempt([&](const SplitDenseOperator& mine, const RowSpace& space) {
    const SplitDiagonal p(Vector::Ones(space.size()), RowSpace::local(space.size()));
    solve(mine, rows_of(space, random_matrix(n, 1, 2)), {.preconditioner = &p});
  });
  EXPECT_EQ(refused, 2);
}

TEST_P(SolversOverRanks, NeedFewReductionsAnIteration) {
  const Index n = 60;
  Problem p{.a = spd_matrix(n, 1e4, 1), .b = random_matrix(n, 5, 2), .x = Matrix::Zero(n, 5)};
  p.diagonal = Vector::LinSpaced(n, 1, 3);
  p.options = {.tolerance = 1e-14, .max_iterations = 40};
  const auto shared = two(p);
  ASSERT_EQ(shared->iterations, 40);
  // One of these is the test operator's own, one the question whether to stop. cg: <p, Ap>, <r, r>
  // and <r, z>; fcg: the window besides; gmres: three norms and two passes. Some more for the start
  // and the checks.
  const bool gmres = GetParam().name == "gmres" || GetParam().name == "fgmres";
  EXPECT_LE(shared.reductions, 40 * (gmres ? 7 : GetParam().flexible ? 6 : 5) + 25);
}

INSTANTIATE_TEST_SUITE_P(Registry, SolversOverRanks,
                         ::testing::ValuesIn(solvers().begin(), solvers().end()),
                         [](const auto& test) { return std::string(test.param.name); });

using KernelSolver = KernelCgResult (*)(const linalg::LinearOperator&, const RegularizedLoss&,
                                        ConstMatrixView, MatrixView, const KernelCgOptions&,
                                        const Observer&);

TEST(KernelCgOverRanks, TakesTheSameIterationsToTheSameAnswer) {
  const Index n = 60;
  const Matrix k = spd_matrix(n, 10, 1);  // rounding does not grow in so few iterations
  const Matrix noise = random_matrix(n, 2, 2);
  const Matrix signs = noise.unaryExpr([](double v) { return v > 0 ? 1.0 : -1.0; });
  for (const KernelSolver solve : {&kernel_cg, &coefficient_cg})
    for (const auto loss : {KernelLoss::squared, KernelLoss::logistic}) {
      const Matrix& y = loss == KernelLoss::squared ? noise : signs;
      const RegularizedLoss problem{loss, 1.0};
      const KernelCgOptions options{.tolerance = 1e-8};
      Matrix alone = Matrix::Zero(n, 2), shared = alone;
      alone(n - 1, 1) = shared(n - 1, 1) = 0.1;  // a guess that only one rank sees
      const Matrix guess = shared;
      const auto expected =
          solve(SplitDenseOperator(k, RowSpace::local(n)), problem, y, alone, options, {});
      EXPECT_TRUE(expected.converged());
      testing::on_two_ranks(n, n / 3, [&](const RowSpace& space) {
        Matrix alpha = rows_of(space, guess);
        const auto result =
            solve(SplitDenseOperator(k, space), problem, rows_of(space, y), alpha, options, {});
        shared.middleRows(space.begin(), space.size()) = alpha;
        EXPECT_TRUE(result.converged());
        EXPECT_EQ(result.column_iterations, expected.column_iterations);
        EXPECT_EQ(result.matvecs, expected.matvecs);
        EXPECT_LE((result.objective - expected.objective).norm(),
                  1e-12 * expected.objective.norm());
      });
      // Both are minimisers to P - min P <= 1e-8 P, so apart by about its root; the steps agree
      // much better.
      EXPECT_LE((shared - alone).norm(), 1e-6 * alone.norm());
    }
}

TEST(KernelCgOverRanks, StopsTogetherAndRefusesTogether) {
  const Index n = 40;
  const Matrix k = spd_matrix(n, 1e6, 1), y = random_matrix(n, 1, 2);
  testing::on_two_ranks(n, n / 2, [&](const RowSpace& space) {
    const SplitDenseOperator mine(k, space);
    Matrix alpha = Matrix::Zero(space.size(), 1);
    Observer observer;
    if (space.begin() > 0)
      observer = [](const Iteration& it) {
        return it.number == 3 ? Action::stop : Action::proceed;
      };
    const auto result =
        kernel_cg(mine, {.lambda = 1e-3}, rows_of(space, y), alpha, {.tolerance = 1e-12}, observer);
    EXPECT_EQ(result.stop, StopReason::interrupted);
    EXPECT_EQ(result.iterations, 3);
    // Labels that are wrong on one rank only.
    Matrix labels = Matrix::Ones(space.size(), 1);
    if (space.begin() == 0) labels(0, 0) = 2;
    EXPECT_THROW(kernel_cg(mine, {KernelLoss::logistic, 1.0}, labels, alpha), Error);
  });
}

}  // namespace ranks_test
}  // namespace mercer::krylov
