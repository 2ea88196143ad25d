// Base points, blocks, rows in passes, and what is refused.
#include "mercer/inference/sparse/sparse_setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "mercer/core/error.hpp"
#include "mercer/inference/sparse/streamed.hpp"
#include "tests/inference/sparse_problems.hpp"

namespace mercer::inference {
namespace sparse_setup_test {

using mercer::testing::Rows;

template <class Call>
void expect_refused(const Call& call, const std::string& because) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << because;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
  }
}

TEST(BasePoints, AreDistinctRowsByEveryChoice) {
  Matrix x = testing::sparse_points(90, 2, 3);
  x.bottomRows(30) = x.topRows(30);  // 60 distinct points
  const auto kernel = testing::sparse_problem().kernel;
  for (const auto& choice : base_choices()) {
    const SparseSetup setup{.rank = 40, .base = choice};
    const Matrix base = choose_base(kernel, x, setup, 7);
    EXPECT_EQ(base.rows(), 40) << choice;
    EXPECT_NO_THROW(check_base(base, 2)) << choice;
    EXPECT_EQ(base, choose_base(kernel, x, setup, 7)) << choice;
    for (const Index row : choose_base_rows(kernel, x, setup, 7)) EXPECT_LT(row, 90);
    EXPECT_NE(base, choose_base(kernel, x, setup, 8)) << choice;
  }
}

TEST(BasePoints, EndWhereTheKernelHasNothingLeft) {
  const auto kernel = kernels::Kernel::parse("linear:iso", 2);  // rank 2 or 3
  EXPECT_LE(choose_base(kernel, testing::sparse_points(50, 2, 3), {.rank = 20}, 1).rows(), 3);
}

TEST(BasePoints, AreRefusedWithAReason) {
  const auto kernel = testing::sparse_problem().kernel;
  const Matrix x = testing::sparse_points(20, 2, 3);
  expect_refused([&] { choose_base(kernel, x, {.rank = 21}, 1); }, "`rank=21`");
  expect_refused([&] { choose_base(kernel, x, {.rank = 0}, 1); }, "`rank`");
  expect_refused([&] { choose_base(kernel, x, {.base = "best"}, 1); }, "best");
  expect_refused([&] { choose_base(kernel, x, {.points = testing::sparse_points(4, 3, 1)}, 1); },
                 "columns is 3");
  Matrix twice = testing::sparse_points(4, 2, 1);
  twice.row(3) = twice.row(1);
  expect_refused([&] { choose_base(kernel, x, {.points = twice}, 1); }, "rows 2 and 4");
  expect_refused([&] { choose_base(kernel, x, {.rank = 3, .points = x}, 1); }, "`rank=3`");
  Matrix missing = testing::sparse_points(4, 2, 1);
  missing(2, 1) = std::nan("");
  expect_refused([&] { check_base(missing, 2); }, "not finite");
  expect_refused([&] { check_base(Matrix(0, 2), 2); }, "there is none");
}

TEST(Blocks, HoldEveryRowOnce) {
  const auto kernel = testing::sparse_problem().kernel;
  const Matrix x = testing::sparse_points(103, 2, 3);
  for (const auto by : {BlocksBy::tree, BlocksBy::random}) {
    EXPECT_EQ(blocks_by(to_string(by)), by);
    const auto blocks = choose_blocks(kernel, x, {.blocks = 7, .blocks_by = by}, 1000, 2);
    EXPECT_EQ(blocks.count(), 7);
    std::set<Index> seen;
    for (Index b = 0; b < 7; ++b) {
      EXPECT_NEAR(static_cast<double>(blocks.block(b).size()), 103 / 7.0, 1);
      seen.insert(blocks.block(b).begin(), blocks.block(b).end());
    }
    EXPECT_EQ(seen.size(), 103u);
  }
  EXPECT_EQ(choose_blocks(kernel, x, {}, 30, 2).count(), 4);
  expect_refused([&] { choose_blocks(kernel, x, {.blocks = 104}, 30, 2); }, "`blocks=104`");
  expect_refused([&] { choose_blocks(kernel, x, {.blocks = 0}, 30, 2); }, "`blocks`");
  expect_refused([&] { blocks_by("colour"); }, "tree, random");
}

TEST(SparseMethods, RefuseWhatTheyCannotDo) {
  const auto rows = testing::sparse_rows(30);
  const auto problem = testing::sparse_problem();
  const Matrix base = testing::sparse_points(5, 2, 8);
  expect_refused([&] { make("subset", problem, {.rows = rows, .sparse = {.points = base}}); },
                 "takes no base points");
  expect_refused([&] { make("rbcm", problem, {.rows = rows, .sparse = {.points = base}}); },
                 "no base points");
  expect_refused([&] { make("rbcm", problem, {.rows = rows, .sparse = {.rank = 5}}); }, "`rank`");
  expect_refused([&] { make("rbcm", problem, {.rows = rows})->use_base(base); }, "no base points");
  const auto dtc = make("dtc", problem, {.rows = rows});
  Matrix gradient;
  expect_refused([&] { dtc->evaluate_with_base(problem, {}, gradient); }, "not optimised");
  expect_refused(
      [&] { make("srm", problem, {.rows = rows, .sparse = {.rank = 31}})->evaluate(problem, {}); },
      "`rank=31`");
  expect_refused(
      [&] {
        make("bcm", problem, {.rows = rows, .sparse = {.blocks = 31}})->evaluate(problem, {});
      },
      "`blocks=31`");
  Problem counts(problem.kernel, likelihoods::make("poisson"));
  expect_refused([&] { make("vfe", counts, {.rows = rows}); }, "needs Gaussian noise");
  for (const char* method : {"pic", "bcm", "rbcm"}) {
    const auto posterior = make(method, problem, {.rows = rows})->posterior(problem, {});
    expect_refused([&] { sparse_query(problem, *posterior.sparse, {.draws = 1}); },
                   "no joint draws");
    const auto query = sparse_query(problem, *posterior.sparse);
    expect_refused(
        [&] { query->check_variances(testing::query_rows(problem, base), Matrix(5, 1), {}); },
        "no solves");
  }
}

TEST(SparseMethods, AreChosenByNameOnly) {
  const auto rows = testing::sparse_rows(30);
  const auto problem = testing::sparse_problem();
  EXPECT_EQ(posterior_method(problem, rows, "cholesky"), "exact");
  EXPECT_EQ(evidence_method(problem, EvidenceBy::factorisation), "exact");
  EXPECT_EQ(testing::approximations_of_regression().size(), 10u);
}

TEST(SparseMethods, KeepTheirBasePointsUntilRenewed) {
  const auto rows = testing::sparse_rows(200);
  const auto problem = testing::sparse_problem();
  auto other = testing::sparse_problem("matern52:iso", 2, MeanKind::zero, 0.2);
  const auto method = make("fitc", problem, {.rows = rows, .seed = 2, .sparse = {.rank = 20}});
  EXPECT_EQ(method->base_points().size(), 0);
  method->evaluate(problem, {});
  const Matrix first = method->base_points();
  EXPECT_EQ(first.rows(), 20);
  method->evaluate(other, {});
  EXPECT_EQ(method->base_points(), first);
  method->renew(other);
  EXPECT_NE(method->base_points(), first);
  method->use_base(first);
  method->renew(other);
  EXPECT_EQ(method->base_points(), first);
}

// Rows in passes, in blocks of other sizes than the slices: sums in another order.
TEST(StreamedRows, GiveWhatRowsInMemoryGive) {
  const auto rows = testing::sparse_rows(5000, 2, Rows::row_noise);
  const auto problem = testing::sparse_problem("matern52:ard", 2, MeanKind::linear);
  const Matrix base = rows.x.topRows(40), at = testing::sparse_points(30, 2, 9);
  int passes = 0;
  Index largest = 0;
  const RowPass pass = [&](const std::function<void(const Observations&)>& each) {
    ++passes;
    for (Index first = 0, size = 100; first < rows.size(); first += size, size = 1700 - size) {
      std::vector<Index> which;
      for (Index i = first; i < std::min(first + size, rows.size()); ++i) which.push_back(i);
      largest = std::max(largest, static_cast<Index>(which.size()));
      each(rows.rows(which));
    }
  };
  for (const auto& entry : methods()) {
    if (!entry.abilities.streams) continue;
    const auto memory = make(entry.name, problem, {.rows = rows, .sparse = {.points = base}});
    const auto streamed = make_streamed(entry.name, problem, pass, base);
    passes = 0;
    const auto want = memory->evaluate(problem, {});
    const auto got = streamed->evaluate(problem, {});
    EXPECT_EQ(passes, 2) << entry.name;
    // Sums of 5,000 terms in another order.
    EXPECT_NEAR(got.value, want.value, 1e-11 * std::abs(want.value)) << entry.name;
    EXPECT_LE((got.gradient - want.gradient).cwiseAbs().maxCoeff(),
              1e-9 * want.gradient.cwiseAbs().maxCoeff())
        << entry.name;
    passes = 0;
    const auto a = memory->posterior(problem, {}), b = streamed->posterior(problem, {});
    EXPECT_EQ(passes, 0) << entry.name << ": the sums of the evaluation are known";
    make_streamed(entry.name, problem, pass, base)->posterior(problem, {});
    EXPECT_EQ(passes, 1) << entry.name;
    EXPECT_EQ(b.evidence.rows, 5000);
    EXPECT_EQ(b.sparse->x.size(), 0);
    const auto p = testing::moments_at(problem, *a.sparse, at);
    const auto q = testing::moments_at(problem, *b.sparse, at);
    EXPECT_LE((p.mean - q.mean).cwiseAbs().maxCoeff(), 1e-9) << entry.name;
    EXPECT_LE((p.variance - q.variance).cwiseAbs().maxCoeff(), 1e-9) << entry.name;
    if (entry.abilities.optimizes_base) {
      Matrix g, h;
      memory->evaluate_with_base(problem, {}, g);
      streamed->evaluate_with_base(problem, {}, h);
      EXPECT_LE((g - h).cwiseAbs().maxCoeff(), 1e-9 * g.cwiseAbs().maxCoeff()) << entry.name;
    }
  }
  EXPECT_EQ(largest, 1600);
}

// The best evaluation and the last one are kept, others are not; with other base points, none.
TEST(StreamedRows, KeepTheSumsThatASearchComesBackTo) {
  const auto rows = testing::sparse_rows(300, 2, Rows::row_noise);
  auto problem = testing::sparse_problem("matern52:ard", 2, MeanKind::constant);
  int passes = 0;
  const RowPass pass = [&](const std::function<void(const Observations&)>& each) {
    ++passes;
    each(rows);
  };
  const auto streamed = make_streamed("vfe", problem, pass, rows.x.topRows(20));
  const Vector start = problem.log_parameters();
  const auto value_at = [&](double by, bool gradient) {
    problem.set_log_parameters(start.array() - by);
    return streamed->evaluate(problem, {.gradient = gradient}).value;
  };
  std::map<double, double> values;
  for (const double by : {0.0, 3.0, 5.0, 4.0}) values[by] = value_at(by, false);
  EXPECT_EQ(passes, 4);
  ASSERT_GT(values[0.0], std::max({values[3.0], values[4.0], values[5.0]}));
  EXPECT_EQ(value_at(0.0, true), values[0.0]);
  EXPECT_EQ(passes, 5) << "the best: its gradient only";
  EXPECT_EQ(value_at(4.0, false), values[4.0]);
  EXPECT_EQ(passes, 5) << "the last";
  EXPECT_EQ(value_at(3.0, false), values[3.0]);
  EXPECT_EQ(passes, 6);
  streamed->use_base(rows.x.bottomRows(20));
  EXPECT_NE(value_at(3.0, false), values[3.0]);
  EXPECT_EQ(passes, 7);
}

TEST(StreamedRows, NeedAMethodThatGoesWithPasses) {
  const auto problem = testing::sparse_problem();
  const Matrix base = testing::sparse_points(5, 2, 8);
  expect_refused([&] { make_streamed("pitc", problem, {}, base); }, "in passes");
  expect_refused([&] { make_streamed("exact", problem, {}, base); }, "in passes");
  Problem counts(problem.kernel, likelihoods::make("poisson"));
  expect_refused([&] { make_streamed("fitc", counts, {}, base); }, "Gaussian noise");
  expect_refused([&] { make_streamed("srm", problem, {}, testing::sparse_points(5, 3, 8)); },
                 "columns is 3");
}

}  // namespace sparse_setup_test
}  // namespace mercer::inference
