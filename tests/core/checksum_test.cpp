#include "mercer/core/checksum.hpp"

#include <gtest/gtest.h>

#include <string>

namespace mercer {
namespace checksum_test {

TEST(Crc32, IsTheOneOfTheStandards) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32(digits.data(), digits.size()), 0xcbf43926U);  // check value of CRC-32/ISO-HDLC
  EXPECT_EQ(crc32(nullptr, 0), 0U);
}

TEST(Crc32, ContinuesWhereItStopped) {
  const std::string text = "a model file, header first, arrays after it";
  const auto whole = crc32(text.data(), text.size());
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32(text.data() + cut, text.size() - cut, crc32(text.data(), cut)), whole);
}

TEST(Fingerprint, IsTheSameOnEveryMachine) {
  const std::string text = "abcdefghij";
  EXPECT_EQ(fingerprint(text.data(), text.size()), 0x6143714ee35143beULL);  // computed in Python
}

TEST(Fingerprint, ChangesWithEveryBit) {
  std::string text = "twenty-one characters";
  const auto before = fingerprint(text.data(), text.size());
  for (auto& c : text)
    for (int bit = 0; bit < 8; ++bit) {
      const char kept = c;
      c = static_cast<char>(c ^ (1 << bit));
      EXPECT_NE(fingerprint(text.data(), text.size()), before);
      c = kept;
    }
}

}  // namespace checksum_test
}  // namespace mercer
