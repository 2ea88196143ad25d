// Laws of the sparse approximations that need no formula of theirs.
#include <gtest/gtest.h>

#include "mercer/core/threads.hpp"
#include "tests/inference/sparse_problems.hpp"

namespace mercer::inference {
namespace sparse_laws_test {

using mercer::testing::Rows;

constexpr double kExact = 1e-8;

class SparseLaw : public ::testing::TestWithParam<std::string> {
 protected:
  bool takes_points() const {
    return methods().find(GetParam()).abilities.base && GetParam() != "subset" &&
           GetParam() != "bcm";
  }
  // Base points: all rows, or some.
  std::unique_ptr<Inference> make_with(const Problem& problem, const Observations& rows,
                                       Index base_points) const {
    SparseSetup setup;
    if (takes_points())
      setup.points = rows.x.topRows(base_points);
    else if (GetParam() == "subset")
      setup.rank = base_points;
    return make(GetParam(), problem, {.rows = rows, .sparse = setup});
  }
};

// rbcm is no approximation in this sense: its experts never see each other.
TEST_P(SparseLaw, AllPointsAsBasePointsGiveTheExactProcess) {
  if (GetParam() == "rbcm") return;
  const auto rows = testing::sparse_rows(60, 2, Rows::row_noise);
  const Matrix at = testing::sparse_points(30, 2, 9);
  for (const auto mean : {MeanKind::zero, MeanKind::constant, MeanKind::linear})
    for (const bool ill_conditioned : {false, true}) {
      auto problem = testing::sparse_problem("rbf:iso", 2, mean, 0.7);
      if (ill_conditioned) problem = testing::with_condition(problem, rows.x, 1e12);
      const auto want = testing::dense_exact(problem, rows, at);
      const auto posterior = make_with(problem, rows, 60)->posterior(problem, {});
      const auto got = testing::moments_at(problem, *posterior.sparse, at);
      EXPECT_NEAR(posterior.evidence.value, want.evidence, kExact * std::abs(want.evidence));
      EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), kExact);
      // The prior of srm, and with it its variance, vanishes away from the base points.
      if (GetParam() != "srm") {
        EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), kExact);
      }
    }
}

// What learning follows is the same, so that one of them learns for both.
TEST_P(SparseLaw, TheEvidenceOfAnotherMethodIsItsOwn) {
  const auto& can = methods().find(GetParam()).abilities;
  if (can.evidence_of.empty()) return;
  const auto& other = methods().find(std::string(can.evidence_of));
  EXPECT_TRUE(other.abilities.evidence_of.empty());
  const auto rows = testing::sparse_rows(60, 2, Rows::row_noise);
  const auto problem = testing::sparse_problem("rbf", 2, MeanKind::constant, 0.7);
  SparseSetup setup;
  if (can.blocks) setup.blocks = 4;
  if (other.abilities.base) setup.points = rows.x.topRows(15);
  const auto mine = make(GetParam(), problem, {.rows = rows, .sparse = setup});
  const auto theirs = make(other.name, problem, {.rows = rows, .sparse = setup});
  const auto a = mine->evaluate(problem, {}), b = theirs->evaluate(problem, {});
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.gradient, b.gradient);
}

// At the base points themselves q** = k**, and the mean of rra is that of srm.
TEST(SparseFamily, RraAndSrmAgreeAtTheBasePoints) {
  const auto rows = testing::sparse_rows(80);
  for (const double condition : {1e3, 1e12}) {
    const Matrix base = rows.x.topRows(20);
    const auto problem =
        testing::with_condition(testing::sparse_problem("rbf:iso"), base, condition);
    const auto mean = [&](const char* method) {
      const auto posterior =
          make(method, problem, {.rows = rows, .sparse = {.points = base}})->posterior(problem, {});
      return testing::moments_at(problem, *posterior.sparse, base).mean;
    };
    EXPECT_LE((mean("rra") - mean("srm")).cwiseAbs().maxCoeff(), kExact) << condition;
  }
}

TEST(SparseFamily, TheVariationalBoundIsBelowTheEvidenceAndGrowsWithBasePoints) {
  for (const auto kind : {Rows::plain, Rows::row_noise, Rows::replicates})
    for (const auto mean : {MeanKind::zero, MeanKind::linear})
      for (const double condition : {1e4, 1e12}) {
        const auto rows = testing::sparse_rows(80, 2, kind);
        const auto problem = testing::with_condition(testing::sparse_problem("rbf:iso", 2, mean),
                                                     rows.x.topRows(40), condition);
        const double exact = testing::dense_exact(problem, rows, rows.x).evidence;
        double before = -std::numeric_limits<double>::infinity();
        for (const Index m : {1, 2, 5, 10, 20, 40, 80}) {
          const auto vfe =
              make("vfe", problem, {.rows = rows, .sparse = {.points = rows.x.topRows(m)}});
          const double bound = vfe->evaluate(problem, {.gradient = false}).value;
          // Rounding of sums of some hundred units.
          EXPECT_LE(bound, exact + 1e-9 * std::abs(exact)) << m;
          EXPECT_GE(bound, before - 1e-9 * std::abs(exact)) << m;
          before = bound;
        }
      }
}

TEST_P(SparseLaw, VariancesAreBetweenZeroAndThePrior) {
  const auto rows = testing::sparse_rows(60);
  Matrix at = 3 * testing::sparse_points(50, 2, 9);
  at.topRows(20) = rows.x.topRows(20);
  for (const double condition : {1e3, 1e12}) {
    const auto problem =
        testing::with_condition(testing::sparse_problem("rbf:iso"), rows.x.topRows(25), condition);
    const auto posterior = make_with(problem, rows, 25)->posterior(problem, {});
    const auto got = testing::moments_at(problem, *posterior.sparse, at);
    const Vector prior = problem.kernel.diagonal(at);
    for (Index i = 0; i < at.rows(); ++i) {
      EXPECT_GT(got.variance(i, 0), 0);
      EXPECT_LE(got.variance(i, 0), prior(i) * (1 + 1e-12));
    }
  }
}

TEST_P(SparseLaw, EvidenceAndPosteriorAgree) {
  const auto rows = testing::sparse_rows(70, 2, Rows::replicates);
  const auto problem = testing::sparse_problem("matern32:iso", 2, MeanKind::constant);
  const auto method = make_with(problem, rows, 20);
  const auto evidence = method->evaluate(problem, {});
  const auto posterior = method->posterior(problem, {.with_evidence = true, .with_gradient = true});
  ASSERT_TRUE(posterior.evidence.known);
  EXPECT_EQ(posterior.evidence.method, GetParam());
  EXPECT_NEAR(posterior.evidence.value, evidence.value, 1e-10 * std::abs(evidence.value));
  EXPECT_LE((posterior.evidence.gradient - evidence.gradient).cwiseAbs().maxCoeff(), 1e-9);
}

// Several slices of rows and blocks, so that there is work to share.
TEST_P(SparseLaw, OneThreadGivesTheBitsOfMany) {
  const auto rows = testing::sparse_rows(4400, 2, Rows::row_noise);
  const auto problem = testing::sparse_problem("matern52:iso", 2, MeanKind::constant);
  const Matrix at = testing::sparse_points(300, 2, 9);
  SparseSetup setup;
  if (GetParam() != "rbcm") setup.rank = 130;
  if (methods().find(GetParam()).abilities.blocks) setup.blocks = 20;
  const auto run = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    const auto method = make(GetParam(), problem, {.rows = rows, .seed = 5, .sparse = setup});
    const auto evidence = method->evaluate(problem, {});
    const auto posterior = method->posterior(problem, {});
    const auto moments = testing::moments_at(problem, *posterior.sparse, at);
    set_num_threads(before);
    return std::tuple(evidence.value, evidence.gradient, moments.mean, moments.variance,
                      method->base_points());
  };
  const auto one = run(1), many = run(4);
  EXPECT_EQ(std::get<0>(one), std::get<0>(many));
  EXPECT_EQ(std::get<1>(one), std::get<1>(many));
  EXPECT_EQ(std::get<2>(one), std::get<2>(many));
  EXPECT_EQ(std::get<3>(one), std::get<3>(many));
  EXPECT_EQ(std::get<4>(one), std::get<4>(many));
}

INSTANTIATE_TEST_SUITE_P(Registry, SparseLaw,
                         ::testing::ValuesIn(testing::approximations_of_regression()),
                         [](const auto& test) { return test.param; });

// Draws of srm are exact; those of dtc stand on random features, 4,096 of them.
TEST(SparseDraws, HaveTheMomentsOfTheQuery) {
  const auto rows = testing::sparse_rows(60);
  const auto problem = testing::sparse_problem("matern52:iso", 2, MeanKind::constant);
  const Matrix at = testing::sparse_points(6, 2, 9);
  const Index draws = 4000;
  for (const char* method : {"srm", "dtc", "vfe", "fitc"}) {
    const auto posterior =
        make(method, problem, {.rows = rows, .sparse = {.points = rows.x.topRows(15)}})
            ->posterior(problem, {});
    const auto got =
        testing::moments_at(problem, *posterior.sparse, at, {.draws = draws, .seed = 3});
    ASSERT_EQ(got.deviations.cols(), draws);
    for (Index i = 0; i < at.rows(); ++i) {
      const double mean = got.deviations.row(i).mean();
      const double square = got.deviations.row(i).squaredNorm() / static_cast<double>(draws);
      // Five standard errors: 12 numbers a method, a false alarm in 40,000. Features err by
      // sqrt(2/4096) of the prior variance, which most of the updates take away again.
      EXPECT_NEAR(mean, 0, 5 * std::sqrt(got.variance(i, 0) / static_cast<double>(draws)));
      const double features = std::string(method) == "srm" ? 0 : 5 * std::sqrt(2.0 / 4096) * 1.3;
      EXPECT_NEAR(square, got.variance(i, 0),
                  5 * std::sqrt(2.0 / static_cast<double>(draws)) * got.variance(i, 0) + features);
    }
  }
}

TEST(SparseDraws, BelongTogetherAcrossBlocksOfRows) {
  const auto rows = testing::sparse_rows(60);
  const auto problem = testing::sparse_problem();
  const Matrix at = testing::sparse_points(6, 2, 9);
  const auto posterior =
      make("fitc", problem, {.rows = rows, .sparse = {.points = rows.x.topRows(15)}})
          ->posterior(problem, {});
  const auto whole = testing::moments_at(problem, *posterior.sparse, at, {.draws = 3, .seed = 3});
  const auto query = sparse_query(problem, *posterior.sparse, {.draws = 5, .seed = 3});
  const auto part = query->moments(testing::query_rows(problem, at.bottomRows(2)), {});
  EXPECT_LE((part.deviations.leftCols(3) - whole.deviations.bottomRows(2)).cwiseAbs().maxCoeff(),
            1e-10);
}

}  // namespace sparse_laws_test
}  // namespace mercer::inference
