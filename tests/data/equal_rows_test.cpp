#include "mercer/data/equal_rows.hpp"

#include <gtest/gtest.h>

namespace mercer::data {
namespace equal_rows_test {

TEST(EqualRows, EveryRowFindsTheFirstOfItsKind) {
  const Matrix x{{1, 2}, {1, 3}, {1, 2}, {0.0, 2}, {-0.0, 2}, {1, 3}, {1, 2}};
  EXPECT_EQ(first_equal_rows(x), (std::vector<Index>{0, 1, 0, 3, 3, 1, 0}));
  EXPECT_TRUE(first_equal_rows(Matrix(0, 2)).empty());
}

TEST(EqualRows, OneDigitTellsRowsApart) {
  const Matrix x{{1.0}, {1.0 + 2e-16}, {1.0 - 2e-16}};
  EXPECT_EQ(first_equal_rows(x)[1], 1);
  EXPECT_EQ(first_equal_rows(x)[2], 2);
}

}  // namespace equal_rows_test
}  // namespace mercer::data
