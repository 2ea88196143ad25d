#include "mercer/core/memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "mercer/core/error.hpp"

namespace mercer {
namespace memory_test {

TEST(ParseBytes, ReadsUnitsAsPowersOf1024) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("1K"), 1024U);
  EXPECT_EQ(parse_bytes("500M"), 500U << 20U);
  EXPECT_EQ(parse_bytes("8G"), std::uint64_t{8} << 30U);
  EXPECT_EQ(parse_bytes("8gb"), std::uint64_t{8} << 30U);
  EXPECT_EQ(parse_bytes("1.5GiB"), std::uint64_t{3} << 29U);
  EXPECT_EQ(parse_bytes("2T"), std::uint64_t{2} << 40U);
}

TEST(ParseBytes, RefusesWhatIsNotAnAmount) {
  for (const char* text : {"", "G", "-1G", "0", "8Q", "8GG", "nan", "inf", "1e999", "8 apples"})
    EXPECT_THROW(parse_bytes(text), InvalidArgument) << text;
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1610612736), "1.50 GiB");
  EXPECT_EQ(format_bytes(0x1.0p60), "1024.00 PiB");
}

TEST(Memory, ResidentSizeFollowsWhatIsTouched) {
  const auto before = current_rss_bytes();
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  std::vector<char> block(bytes, 1);
  // Pages of the block are in; a little else may have gone.
  EXPECT_GE(current_rss_bytes() + (4U << 20U), before + bytes);
  EXPECT_GE(peak_rss_bytes(), bytes);
  EXPECT_EQ(block[bytes / 2], 1);
}

TEST(Memory, SomethingIsAvailable) { EXPECT_GT(available_memory_bytes(), 0U); }

TEST(Memory, ALimitOnAddressSpaceIsSeen) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  if (before.rlim_cur != RLIM_INFINITY || before.rlim_max != RLIM_INFINITY)
    GTEST_SKIP() << "there is a limit already";
  EXPECT_EQ(address_space_left(), std::nullopt);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 50U;  // so large that sanitizers run on under it
  setrlimit(RLIMIT_AS, &limited);
  const auto left = address_space_left();
  setrlimit(RLIMIT_AS, &before);
  ASSERT_TRUE(left.has_value());
  EXPECT_LT(*left, std::uint64_t{1} << 50U);
}

}  // namespace memory_test
}  // namespace mercer
