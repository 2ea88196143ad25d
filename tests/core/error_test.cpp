#include "mercer/core/error.hpp"

#include <gtest/gtest.h>

namespace mercer {
namespace error_test {

TEST(Error, ADimensionMismatchNamesBothThingsAndBothValues) {
  const DimensionMismatch error("cg: rows of b", 3, "size of A", 4);
  EXPECT_STREQ(error.what(), "cg: rows of b is 3, but size of A is 4");
}

TEST(Error, TheFamilyIsCaughtByItsBase) {
  EXPECT_THROW(throw DimensionMismatch("a", 1, "b", 2), InvalidArgument);
  EXPECT_THROW(throw NotPositiveDefinite("pivot", 7), Error);
  EXPECT_THROW(throw ModelFileError("damaged"), Error);
  try {
    throw NotPositiveDefinite("pivot", 7);
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.pivot, 7);
  }
}

}  // namespace error_test
}  // namespace mercer
