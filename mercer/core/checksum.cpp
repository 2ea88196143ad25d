#include "mercer/core/checksum.hpp"

#include <zlib.h>

#include <cstring>

namespace mercer {

std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t previous) {
  return static_cast<std::uint32_t>(
      ::crc32_z(previous, static_cast<const unsigned char*>(data), bytes));
}

std::uint64_t fingerprint(const void* data, std::size_t bytes, std::uint64_t previous) {
  const auto* cursor = static_cast<const unsigned char*>(data);
  std::uint64_t h = previous;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * 0x100000001b3ULL;
    h ^= h >> 29;
  };
  for (; bytes >= 8; bytes -= 8, cursor += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, cursor, 8);
    mix(word);
  }
  for (; bytes > 0; --bytes, ++cursor) mix(*cursor);
  return h;
}

}  // namespace mercer
