#include "mercer/data/split.hpp"

#include <algorithm>

#include "tests/data/files.hpp"

namespace mercer::data {
namespace split_test {

using testing::message_of;

void expect_partition(const Split& split, Index n) {
  std::vector<Index> all = split.train;
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<Index>(all.size()), n);
  for (Index i = 0; i < n; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.test.begin(), split.test.end()));
}

TEST(Split, IsAPartitionOfTheSizeAsked) {
  const auto split = split_rows(1000, 0.25, 1);
  expect_partition(split, 1000);
  EXPECT_EQ(split.test.size(), 250U);
  EXPECT_EQ(split_rows(1000, 0.25, 1).test, split.test);
  EXPECT_NE(split_rows(1000, 0.25, 2).test, split.test);
  EXPECT_EQ(split_rows(10, 0.001, 0).test.size(), 1U);
  EXPECT_EQ(split_rows(10, 0.999, 0).train.size(), 1U);
}

TEST(Split, FoldsAreEvenAndCoverAllRows) {
  const auto folds = fold_of_rows(103, 10, 7);
  for (Index fold = 0; fold < 10; ++fold) {
    const auto split = fold_split(folds, fold);
    expect_partition(split, 103);
    EXPECT_EQ(split.test.size(), fold < 3 ? 11U : 10U);
  }
  EXPECT_EQ(fold_of_rows(103, 10, 7), folds);
}

TEST(Split, WrongArguments) {
  for (const double fraction : {0.0, 1.0, -0.1, std::nan("")})
    message_of<InvalidArgument>([&] { split_rows(10, fraction, 0); });
  message_of<InvalidArgument>([] { split_rows(1, 0.5, 0); });
  message_of<InvalidArgument>([] { fold_of_rows(5, 1, 0); });
  message_of<InvalidArgument>([] { fold_of_rows(5, 6, 0); });
  message_of<InvalidArgument>([] { fold_split(std::vector<Index>{0, 1}, 2); });
}

TEST(Split, TakeRows) {
  const Matrix x{{1, 2}, {3, 4}, {5, 6}};
  const std::vector<Index> rows = {2, 0};
  EXPECT_EQ(take_rows(ConstMatrixView(x), rows), (Matrix{{5, 6}, {1, 2}}));
  EXPECT_EQ(take_rows(ConstVectorView(x.col(1)), rows), (Vector{{6, 2}}));
  const std::vector<Index> bad = {3};
  message_of<InvalidArgument>([&] { take_rows(ConstMatrixView(x), bad); });
}

}  // namespace split_test
}  // namespace mercer::data
