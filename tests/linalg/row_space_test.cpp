#include "mercer/linalg/row_space.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/linalg/reductions.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/two_ranks.hpp"

namespace mercer::linalg {
namespace row_space_test {

using testing::on_two_ranks;
using testing::random_matrix;
using testing::rows_of;
using testing::same_bits;

TEST(RowSpace, OneProcessHoldsEverythingAndReducesNothing) {
  const auto space = RowSpace::local(7);
  EXPECT_EQ(space.begin(), 0);
  EXPECT_EQ(space.end(), 7);
  EXPECT_EQ(space.size(), 7);
  EXPECT_EQ(space.global_size(), 7);
  EXPECT_FALSE(space.split());
  std::vector<double> values = {1.5, std::numeric_limits<double>::infinity()};
  const auto before = values;
  for (const auto how : {Reduction::sum, Reduction::max, Reduction::min}) space.reduce(values, how);
  EXPECT_EQ(values, before);
  EXPECT_TRUE(space.any(true) && !space.any(false) && space.all(true) && !space.all(false));
  EXPECT_EQ(space.stacked(3), RowSpace::local(21));
}

TEST(RowSpace, TwoRanksAgree) {
  on_two_ranks(10, 4, [](const RowSpace& space) {
    const bool first = space.begin() == 0;
    EXPECT_EQ(space.size(), first ? 4 : 6);
    EXPECT_EQ(space.global_size(), 10);
    EXPECT_EQ(space.sum(first ? 1 : 2), 3);
    EXPECT_EQ(space.max(first ? 1 : 2), 2);
    EXPECT_EQ(space.min(first ? 1 : 2), 1);
    EXPECT_TRUE(space.any(first));
    EXPECT_FALSE(space.all(first));
    EXPECT_TRUE(space.all(true));
  });
}

TEST(RowSpace, RowsThatAreNoPartAreRefused) {
  testing::Meeting meeting(1);
  const testing::ThreadRank ranks(meeting, 0);
  EXPECT_THROW(RowSpace(-1, 2, 5, ranks), InvalidArgument);
  EXPECT_THROW(RowSpace(3, 2, 5, ranks), InvalidArgument);
  EXPECT_THROW(RowSpace(3, 6, 5, ranks), InvalidArgument);
  EXPECT_THROW(RowSpace(0, 2, 5, ranks).stacked(2).stacked(2), InvalidArgument);
}

TEST(RowSpace, AnySplitDrawsTheNumbersOfOneProcess) {
  // Odd numbers of rows and columns, so that normals are cut inside a pair and signs inside a block
  // of four; two fills in a row, so that the streams must end at the same place.
  const Index n = 11, columns = 3;
  Matrix normals(n, columns), more(n, columns), signs(n, columns);
  Rng rng(3, "probes");
  rng.fill_normal(normals);
  rng.fill_rademacher(signs);
  rng.fill_normal(more);
  const double after = rng.uniform();
  for (Index cut = 0; cut <= n; ++cut)
    on_two_ranks(n, cut, [&](const RowSpace& space) {
      Rng mine(3, "probes");
      Matrix part(space.size(), columns);
      fill_normal(mine, space, part);
      EXPECT_TRUE(same_bits(part, rows_of(space, normals))) << cut;
      fill_rademacher(mine, space, part);
      EXPECT_TRUE(same_bits(part, rows_of(space, signs))) << cut;
      fill_normal(mine, space, part);
      EXPECT_TRUE(same_bits(part, rows_of(space, more))) << cut;
      EXPECT_EQ(mine.uniform(), after);
    });
}

TEST(RowSpace, StackedCopiesDrawTheNumbersOfOneProcess) {
  const Index n = 7, copies = 3;
  Matrix whole(copies * n, 2);
  Rng(5, "probes").fill_normal(whole);
  on_two_ranks(n, 3, [&](const RowSpace& space) {
    const auto stacked = space.stacked(copies);
    EXPECT_EQ(stacked.size(), copies * space.size());
    EXPECT_EQ(stacked.global_size(), copies * n);
    Matrix part(stacked.size(), 2);
    Rng mine(5, "probes");
    fill_normal(mine, stacked, part);
    for (Index c = 0; c < copies; ++c)
      EXPECT_TRUE(same_bits(part.middleRows(c * space.size(), space.size()),
                            whole.middleRows(c * n + space.begin(), space.size())));
    EXPECT_THROW(fill_normal(mine, space, part), DimensionMismatch);
  });
}

TEST(Reductions, AreThoseOfAllRows) {
  const Index n = 50;
  const Matrix a = random_matrix(n, 4, 1), b = random_matrix(n, 4, 2);
  const Vector d = (a.col(0).cwiseAbs2().array() + 0.1).matrix();
  const std::vector<Index> which = {49, 0, 20, 0, 19};
  for (const Index cut : {Index{20}, Index{0}, n})
    on_two_ranks(n, cut, [&](const RowSpace& space) {
      const Matrix here = rows_of(space, a), there = rows_of(space, b);
      Vector out(4);
      dots(space, here, there, {out.data(), 4});
      // Sums of 50 products of size 1.
      EXPECT_LE((out - a.cwiseProduct(b).colwise().sum().transpose()).norm(), 1e-13);
      largest_entries(space, here, {out.data(), 4});
      EXPECT_EQ(out, Vector(a.cwiseAbs().colwise().maxCoeff().transpose()));
      Matrix c(4, 4);
      gram(space, here, c);
      EXPECT_LE((c - a.transpose() * a).norm(), 1e-12);
      inner_products(space, here, there, c);
      EXPECT_LE((c - a.transpose() * b).norm(), 1e-12);
      const Matrix rows = gather_rows(space, here, which);
      for (std::size_t i = 0; i < which.size(); ++i)
        EXPECT_TRUE(rows.row(static_cast<Index>(i)) == a.row(which[i]));
      EXPECT_EQ(gather_all(space, here.col(1)), Vector(a.col(1)));
      EXPECT_NEAR(harmonic_mean(space, Vector(rows_of(space, d))), Diagonal(d).harmonic_mean(),
                  1e-12);
      EXPECT_EQ(harmonic_mean(space, 0.5), 0.5);
    });
}

TEST(Reductions, AProblemOfOneRankIsThrownOnAll) {
  int thrown[2] = {};
  on_two_ranks(4, 2, [&](const RowSpace& space) {
    const bool first = space.begin() == 0;
    try {
      check_on_all_ranks(space, "test", [&] {
        if (first) throw InvalidArgument("mine");
      });
    } catch (const InvalidArgument&) {
      thrown[first ? 0 : 1] = 1;
    } catch (const Error&) {
      thrown[first ? 0 : 1] = 2;
    }
    check_on_all_ranks(space, "test", [] {});
  });
  EXPECT_EQ(thrown[0], 1);
  EXPECT_EQ(thrown[1], 2);
}

TEST(TwoRanks, ARankThatLeavesOrIsOutOfStepIsNoDeadlock) {
  EXPECT_THROW(on_two_ranks(4, 2,
                            [](const RowSpace& space) {
                              if (space.begin() == 0) throw InvalidArgument("gone");
                              space.sum(1);
                            }),
               InvalidArgument);
  EXPECT_THROW(on_two_ranks(4, 2,
                            [](const RowSpace& space) {
                              if (space.begin() == 0) space.sum(1);
                            }),
               testing::RankLeft);
  EXPECT_THROW(on_two_ranks(4, 2,
                            [](const RowSpace& space) {
                              if (space.begin() == 0)
                                space.sum(1);
                              else
                                space.max(1);
                            }),
               testing::RankLeft);
}

}  // namespace row_space_test
}  // namespace mercer::linalg
