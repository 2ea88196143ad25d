// Every sparse approximation against its dense formula, with every mean and kind of rows.
#include <gtest/gtest.h>

#include "mercer/inference/sparse/bcm.hpp"
#include "tests/inference/sparse_problems.hpp"

namespace mercer::inference {
namespace sparse_dense_test {

using mercer::testing::Rows;

// Sums of 60 rows at a noise of 0.07: whitening and dense solves each lose about the condition of
// B or C, below 1e4, to rounding.
constexpr double kClose = 1e-9;

void expect_close(ConstMatrixView got, ConstMatrixView want, const std::string& what) {
  ASSERT_EQ(got.rows(), want.rows()) << what;
  EXPECT_LE((got - want).cwiseAbs().maxCoeff(), kClose) << what;
}

struct Setting {
  std::string method;
  MeanKind mean;
  Rows rows;
};

std::vector<Setting> settings(const std::vector<std::string>& names) {
  std::vector<Setting> out;
  for (const auto& method : names)
    for (const auto mean : {MeanKind::zero, MeanKind::constant, MeanKind::linear})
      for (const auto rows : {Rows::plain, Rows::row_noise, Rows::replicates})
        out.push_back({method, mean, rows});
  return out;
}

class SparseFormula : public ::testing::TestWithParam<Setting> {};

TEST_P(SparseFormula, IsTheDenseOne) {
  const auto& [method, mean, kind] = GetParam();
  const auto rows = testing::sparse_rows(60, 2, kind);
  const auto problem = testing::sparse_problem("matern52:iso + 0.3*linear:iso", 2, mean);
  const Matrix base = testing::sparse_points(15, 2, 8);
  const auto inference =
      make(method, problem, {.rows = rows, .sparse = {.points = base, .blocks = 4}});
  const auto posterior = inference->posterior(problem, {.with_evidence = true});
  ASSERT_TRUE(posterior.sparse);
  EXPECT_EQ(posterior.sparse->method, method);
  EXPECT_EQ(posterior.sparse->jitter, 0);
  // pic: rows of the data lie in their own block.
  const Matrix at = method == "pic" ? rows.x.topRows(20) : testing::sparse_points(20, 2, 9);
  std::vector<Index> block(60, 0), of_new;
  if (method == "pitc" || method == "pic") {
    const auto state = inference->save();
    const auto& order = state.at("block order");
    const auto& offsets = state.at("block offsets");
    for (Index b = 0; b + 1 < offsets.size(); ++b)
      for (auto i = static_cast<Index>(offsets(b)); i < static_cast<Index>(offsets(b + 1)); ++i)
        block[static_cast<std::size_t>(order(i))] = b;
    of_new.assign(block.begin(), block.begin() + 20);
  }
  const auto want = testing::dense_sparse(method, problem, rows, base, at, block, of_new);

  const auto got = testing::moments_at(problem, *posterior.sparse, at);

  EXPECT_NEAR(posterior.evidence.value, want.evidence, kClose * std::abs(want.evidence));
  EXPECT_NEAR(inference->evaluate(problem, {.gradient = false}).value, want.evidence,
              kClose * std::abs(want.evidence));
  expect_close(got.mean, want.mean, "mean");
  // The formula of rra has no variance; it is that of dtc.
  const auto dtc = testing::dense_sparse("dtc", problem, rows, base, at);
  expect_close(got.variance, method == "rra" ? dtc.variance : want.variance, "variance");
}

std::string setting_name(const ::testing::TestParamInfo<Setting>& info) {
  const char* rows[] = {"plain", "row_noise", "replicates"};
  return info.param.method + "_" + std::string(to_string(info.param.mean)) + "_" +
         rows[static_cast<int>(info.param.rows)];
}
INSTANTIATE_TEST_SUITE_P(Family, SparseFormula,
                         ::testing::ValuesIn(settings({"srm", "dtc", "vfe", "fitc", "pitc", "pic",
                                                       "rra"})),
                         setting_name);

class CommitteeFormula : public ::testing::TestWithParam<Setting> {
 protected:
  std::unique_ptr<Inference> make_it(const Problem& problem, const Observations& rows, Index blocks,
                                     Matrix points = {}) const {
    SparseSetup setup{.points = std::move(points), .blocks = blocks};
    return make(GetParam().method, problem, {.rows = rows, .sparse = std::move(setup)});
  }
};

// One block: the evidence is exact, and so is bcm at the points that are asked for.
TEST_P(CommitteeFormula, OfOneBlockIsExact) {
  const auto rows = testing::sparse_rows(50, 2, GetParam().rows);
  const auto problem = testing::sparse_problem("matern52:iso", 2, GetParam().mean);
  const Matrix at = testing::sparse_points(20, 2, 9);
  const auto want = testing::dense_exact(problem, rows, at);
  const auto posterior = make_it(problem, rows, 1)->posterior(problem, {});
  EXPECT_NEAR(posterior.evidence.value, want.evidence, kClose * std::abs(want.evidence));
  const auto got = testing::moments_at(problem, *posterior.sparse, at);
  if (GetParam().method == "bcm") {
    expect_close(got.mean, want.mean, "mean");
    expect_close(got.variance, want.variance, "variance");
    return;
  }
  // rbcm: one expert that counts beta times, the prior 1 - beta times.
  if (GetParam().mean != MeanKind::zero) return;
  for (Index i = 0; i < at.rows(); ++i) {
    const double prior = problem.kernel.diagonal(at.middleRows(i, 1))(0);
    const double beta = 0.5 * std::log(prior / want.variance(i));
    const double variance = 1 / (beta / want.variance(i) + (1 - beta) / prior);
    EXPECT_NEAR(got.variance(i, 0), variance, kClose);
    EXPECT_NEAR(got.mean(i, 0), variance * beta / want.variance(i) * want.mean(i), kClose);
  }
}

// bcm at any points is pitc with those for base points, and beta that of the blocks.
TEST_P(CommitteeFormula, OfSeveralBlocksIsTheSumOfTheirEvidences) {
  const auto rows = testing::sparse_rows(60, 2, GetParam().rows);
  const auto problem = testing::sparse_problem("matern52:iso", 2, GetParam().mean);
  const auto inference = make_it(problem, rows, 3);
  const double value = inference->evaluate(problem, {.gradient = false}).value;
  const auto posterior = inference->posterior(problem, {});
  const auto& blocks = posterior.sparse->blocks;
  ASSERT_EQ(blocks.count(), 3);
  // The blocks' covariance is K within them and nothing between.
  Matrix c = Matrix::Zero(60, 60);
  for (Index b = 0; b < 3; ++b)
    for (const Index i : blocks.block(b))
      for (const Index j : blocks.block(b))
        c(i, j) = problem.kernel.reference_matrix(rows.x.row(i), rows.x.row(j))(0, 0);
  c.diagonal() += rows.noise.at(problem.noise()).vector(60);
  const Matrix at = testing::sparse_points(5, 2, 9);
  const auto want =
      testing::dense_answer(problem, rows, c, at, Matrix::Zero(60, 5), Vector::Zero(5));
  EXPECT_NEAR(value, want.evidence, kClose * std::abs(want.evidence));
  EXPECT_NEAR(posterior.evidence.value, want.evidence, kClose * std::abs(want.evidence));
}
INSTANTIATE_TEST_SUITE_P(Committees, CommitteeFormula,
                         ::testing::ValuesIn(settings({"bcm", "rbcm"})), setting_name);

TEST(BayesianCommittee, ProductFormIsTheWeightForm) {
  const auto rows = testing::sparse_rows(80);
  // A rough kernel and points apart: S_qq and the blocks' covariances are well conditioned, which
  // the inverses of the product form need.
  const auto problem = testing::sparse_problem("matern12:iso", 2, MeanKind::zero, 0.5);
  const Matrix at = testing::sparse_points(12, 2, 9);
  for (const auto by : {BlocksBy::tree, BlocksBy::random}) {
    const auto posterior =
        make("bcm", problem, {.rows = rows, .sparse = {.blocks = 4, .blocks_by = by}})
            ->posterior(problem, {});
    const auto weight = testing::moments_at(problem, *posterior.sparse, at);
    const auto product = bcm_product_form(problem, *posterior.sparse, at);
    EXPECT_LE((weight.mean - product.mean).cwiseAbs().maxCoeff(), 1e-10);
    EXPECT_LE((weight.variance - product.covariance.diagonal()).cwiseAbs().maxCoeff(), 1e-10);
  }
}

// Points that are given take the place of those asked for: pitc with them.
TEST(BayesianCommittee, WithBasePointsIsPitc) {
  const auto rows = testing::sparse_rows(60, 2, Rows::row_noise);
  const auto problem = testing::sparse_problem();
  const Matrix base = testing::sparse_points(12, 2, 8), at = testing::sparse_points(10, 2, 9);
  const SparseSetup setup{.points = base, .blocks = 3};
  const auto bcm = make("bcm", problem, {.rows = rows, .sparse = setup})->posterior(problem, {});
  const auto pitc = make("pitc", problem, {.rows = rows, .sparse = setup})->posterior(problem, {});
  EXPECT_EQ(bcm.sparse->x.size(), 0);
  const auto a = testing::moments_at(problem, *bcm.sparse, at);
  const auto b = testing::moments_at(problem, *pitc.sparse, at);
  expect_close(a.mean, b.mean, "mean");
  expect_close(a.variance, b.variance, "variance");
  EXPECT_NE(bcm.evidence.value, pitc.evidence.value);
}

// So many rows at a time are base points together.
TEST(BayesianCommittee, RankIsTheNumberOfPointsTakenTogether) {
  const auto rows = testing::sparse_rows(60);
  const auto problem = testing::sparse_problem();
  const Matrix at = testing::sparse_points(10, 2, 9);
  const auto posterior = [&](Index rank) {
    return make("bcm", problem, {.rows = rows, .sparse = {.rank = rank, .blocks = 3}})
        ->posterior(problem, {});
  };
  const auto five = testing::moments_at(problem, *posterior(5).sparse, at);
  const auto ten = posterior(10);
  const auto first = testing::moments_at(problem, *ten.sparse, at.topRows(5));
  const auto second = testing::moments_at(problem, *ten.sparse, at.bottomRows(5));
  EXPECT_EQ(Matrix(five.mean.topRows(5)), first.mean);
  EXPECT_EQ(Matrix(five.mean.bottomRows(5)), second.mean);
  EXPECT_NE(testing::moments_at(problem, *ten.sparse, at).mean, five.mean);
}

// The same point twice makes S_qq singular: jitter, and the answer of the point once. What jitter
// of 1e-14 to 1e-13 changes of L_bb is its root.
TEST(BayesianCommittee, TakesPointsThatAreAskedForTwice) {
  const auto rows = testing::sparse_rows(60);
  const auto problem = testing::sparse_problem();
  Matrix at = testing::sparse_points(10, 2, 9);
  const auto posterior =
      make("bcm", problem, {.rows = rows, .sparse = {.blocks = 3}})->posterior(problem, {});
  const auto once = testing::moments_at(problem, *posterior.sparse, at);
  at.conservativeResize(13, 2);
  at.bottomRows(3) = Matrix(at.topRows(3));
  const auto twice = testing::moments_at(problem, *posterior.sparse, at);
  EXPECT_EQ(once.jitter, 0);
  EXPECT_GT(twice.jitter, 0);
  EXPECT_LE((twice.mean.topRows(10) - once.mean).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_LE((twice.mean.bottomRows(3) - once.mean.topRows(3)).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_LE((twice.variance.bottomRows(3) - once.variance.topRows(3)).cwiseAbs().maxCoeff(), 1e-6);
}

}  // namespace sparse_dense_test
}  // namespace mercer::inference
