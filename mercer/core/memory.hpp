// What the machine has and what this process uses, in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Largest resident size of this process so far.
std::uint64_t peak_rss_bytes();
/// Resident size of this process now.
std::uint64_t current_rss_bytes();
/// What the kernel says can still be allocated (limits of the cgroup and of ulimit included).
std::uint64_t available_memory_bytes();
/// What `ulimit -v` (or -d) still allows this process; unset when there is no such limit.
std::optional<std::uint64_t> address_space_left();

/// What the program, its libraries and their buffers take, about: counted into every budget.
inline constexpr std::uint64_t program_bytes = std::uint64_t{40} << 20;

/// "8G", "500M", "1.5GiB", "4096" -> bytes. K, M, G, T are powers of 1024.
std::uint64_t parse_bytes(std::string_view text);
/// 1610612736 -> "1.50 GiB".
std::string format_bytes(double bytes);

}  // namespace mercer
MERCER_API_END
