#include "mercer/core/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "mercer/core/error.hpp"

namespace mercer {
namespace {

// The number after `key` in a file of "key: value kB" lines; 0 when it is not there.
std::uint64_t read_kib(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    if (word == key) {
      std::uint64_t value = 0;
      in >> value;
      return value * 1024;
    }
    in.ignore(4096, '\n');
  }
  return 0;
}

std::uint64_t read_number(const char* file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : 0;
}

}  // namespace

std::uint64_t peak_rss_bytes() {
  // ru_maxrss begins with the size of the program that started this one.
  if (const auto own = read_kib("/proc/self/status", "VmHWM:"); own > 0) return own;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::uint64_t current_rss_bytes() { return read_kib("/proc/self/status", "VmRSS:"); }

std::uint64_t available_memory_bytes() {
  std::uint64_t available = read_kib("/proc/meminfo", "MemAvailable:");
  const std::uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
  if (limit > 0) {
    const std::uint64_t used = read_number("/sys/fs/cgroup/memory.current");
    available = std::min(available, limit > used ? limit - used : 0);
  }
  return std::min(available, address_space_left().value_or(available));
}

std::optional<std::uint64_t> address_space_left() {
  std::optional<std::uint64_t> left;
  const auto look = [&](auto resource, const std::string& key) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const std::uint64_t used = read_kib("/proc/self/status", key);
    const std::uint64_t here = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    left = std::min(left.value_or(here), here);
  };
  look(RLIMIT_AS, "VmSize:");
  look(RLIMIT_DATA, "VmData:");
  return left;
}

std::uint64_t parse_bytes(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(rest, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  if (unit.ends_with("IB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  const std::string units = "KMGT";
  const auto power = unit.empty() ? 0 : units.find(unit.front()) + 1;
  if (error != std::errc{} || !(value > 0) || unit.size() > 1 || power > units.size() ||
      (!unit.empty() && power == 0) || !std::isfinite(value))
    throw InvalidArgument(fmt::format(
        "'{}' is not an amount of memory; write it as 500M, 8G or a number of bytes", text));
  const double bytes = value * std::pow(1024.0, static_cast<double>(power));
  if (bytes > 1e18)
    throw InvalidArgument(fmt::format("'{}' is more memory than any machine has", text));
  return static_cast<std::uint64_t>(bytes);
}

std::string format_bytes(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

}  // namespace mercer
