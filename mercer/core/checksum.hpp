#pragma once

#include <cstddef>
#include <cstdint>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// CRC-32 (the one of zlib and gzip) of some bytes; pass the last value to continue it.
std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t previous = 0);

/// A 64-bit fingerprint (FNV-1a over 8-byte words), used to recognise the same data again.
std::uint64_t fingerprint(const void* data, std::size_t bytes,
                          std::uint64_t previous = 0xcbf29ce484222325ULL);

}  // namespace mercer
MERCER_API_END
