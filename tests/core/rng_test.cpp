#include "mercer/core/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mercer/core/error.hpp"

namespace mercer {
namespace rng_test {

// From an independent implementation in Python, itself checked against the known answers that
// Random123 publishes (philox4x32-10, counter and key all zeros and all ones).
TEST(Rng, DrawsThePhiloxBlocksOfItsStream) {
  Rng plain(0);
  for (const std::uint32_t expected : {0xe3ee5182U, 0x1e0f9b08U, 0x520ad619U, 0xc7f7fed0U})
    EXPECT_EQ(plain.bits32(), expected);

  Rng probe(42, "probe", 3);
  for (const std::uint32_t expected : {0x55ce97a2U, 0xe769ebb1U, 0xe16609cbU, 0x5d71086fU,
                                       0xc9d94f15U, 0xa16080e8U, 0xe139587bU, 0x62c73f30U})
    EXPECT_EQ(probe.bits32(), expected);

  Rng high(UINT64_MAX, "split", (std::uint64_t{1} << 40) + 7);
  EXPECT_EQ(high.bits64(), 0x80ccc23302cb61dcULL);
}

TEST(Rng, StreamsDifferInSeedPurposeAndIndex) {
  std::set<std::uint64_t> first;
  for (const std::uint64_t seed : {0, 1})
    for (const char* purpose : {"", "a", "b"})
      for (const std::uint64_t index : {0, 1, 2}) first.insert(Rng(seed, purpose, index).bits64());
  EXPECT_EQ(first.size(), 18U);
}

TEST(Rng, UniformIsInsideTheOpenIntervalAndFlat) {
  Rng rng(1, "uniform");
  constexpr int bins = 64;
  constexpr int draws = 64000;
  std::vector<double> counts(bins, 0.0);
  for (int i = 0; i < draws; ++i) {
    const double u = rng.uniform();
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    counts[static_cast<std::size_t>(u * bins)] += 1;
  }
  double chi2 = 0;
  for (const double c : counts) chi2 += (c - draws / bins) * (c - draws / bins) / (draws / bins);
  // Chi-square with 63 degrees of freedom: beyond 121 in one of a hundred thousand.
  EXPECT_LT(chi2, 121.0);
}

TEST(Rng, NormalHasTheMomentsOfANormal) {
  Rng rng(2, "normal");
  constexpr int draws = 200000;
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  double fourths = 0;
  for (int i = 0; i < draws; ++i) {
    const double z = rng.normal();
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    fourths += z * z * z * z;
  }
  // Each within 4.5 standard errors: sd of z, z^2, z^3, z^4 are 1, sqrt 2, sqrt 15, sqrt 96.
  const double unit = 4.5 / std::sqrt(static_cast<double>(draws));
  EXPECT_NEAR(sum / draws, 0.0, unit);
  EXPECT_NEAR(squares / draws, 1.0, unit * std::sqrt(2.0));
  EXPECT_NEAR(cubes / draws, 0.0, unit * std::sqrt(15.0));
  EXPECT_NEAR(fourths / draws, 3.0, unit * std::sqrt(96.0));
}

TEST(Rng, IndexIsFlatAndInRange) {
  Rng rng(3, "index");
  std::vector<double> counts(7, 0.0);
  constexpr int draws = 70000;
  for (int i = 0; i < draws; ++i) counts[static_cast<std::size_t>(rng.index(7))] += 1;
  double chi2 = 0;
  for (const double c : counts) chi2 += (c - 10000) * (c - 10000) / 10000;
  EXPECT_LT(chi2, 34.0);  // 6 degrees of freedom, one in a hundred thousand
  EXPECT_EQ(rng.index(1), 0);
  EXPECT_THROW(rng.index(0), InvalidArgument);
}

TEST(Rng, PermutationHoldsEveryNumberOnceAndEveryOrderIsAsLikely) {
  Rng rng(4, "permutation");
  auto order = rng.permutation(1000);
  std::sort(order.begin(), order.end());
  for (Index i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);

  std::vector<double> counts(6, 0.0);
  for (int i = 0; i < 6000; ++i) {
    const auto p = rng.permutation(3);
    counts[static_cast<std::size_t>(2 * p[0] + (p[1] > p[2] ? 1 : 0))] += 1;
  }
  double chi2 = 0;
  for (const double c : counts) chi2 += (c - 1000) * (c - 1000) / 1000;
  EXPECT_LT(chi2, 31.0);  // 5 degrees of freedom, one in a hundred thousand
  EXPECT_TRUE(rng.permutation(0).empty());
}

TEST(Rng, FillsMatricesColumnByColumn) {
  Matrix filled(5, 3);
  Rng(5, "fill").fill_normal(filled);
  Rng again(5, "fill");
  for (Index j = 0; j < 3; ++j)
    for (Index i = 0; i < 5; ++i) EXPECT_EQ(filled(i, j), again.normal());

  Rng(6, "fill").fill_rademacher(filled);
  EXPECT_TRUE((filled.array().abs() == 1.0).all());
}

}  // namespace rng_test
}  // namespace mercer
