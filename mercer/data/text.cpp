#include "mercer/data/text.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercer::data {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// Length of the UTF-8 sequence at the start of `text`, 0 if it is not one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool beyond = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Levenshtein distance, ignoring case; names longer than 64 bytes are never close.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.size() > 64 || b.size() > 64) return std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_missing(std::string_view cell) {
  cell = trim(cell);
  if (cell.empty()) return true;
  if (cell.size() > 4) return false;
  for (const std::string_view word : {"nan", "na", "n/a", "null", "?", "-nan"})
    if (equal_ignoring_case(cell, word)) return true;
  return false;
}

Cell classify(std::string_view cell, double& value) {
  cell = trim(cell);
  if (is_missing(cell)) return Cell::missing;
  // fast_float takes no leading plus; "+-1" stays text.
  const bool plus = cell.size() > 1 && cell[0] == '+' && cell[1] != '-' && cell[1] != '+';
  const std::string_view digits = plus ? cell.substr(1) : cell;
  double parsed = 0;
  const auto result = fast_float::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  if (result.ptr != digits.data() + digits.size() || result.ec == std::errc::invalid_argument)
    return Cell::text;
  if (std::isnan(parsed)) return Cell::text;  // nan(...) with something inside
  if (std::isinf(parsed)) return Cell::infinite;
  value = parsed;
  return Cell::number;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 40;
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > limit) return out + "...'";
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out + "'";
}

std::string shown_list(const std::vector<std::string>& names, std::size_t limit) {
  std::string out;
  for (std::size_t i = 0; i < std::min(limit, names.size()); ++i)
    out += (i == 0 ? "" : ", ") + shown(names[i]);
  if (names.size() > limit) out += fmt::format(" and {} more", names.size() - limit);
  return out;
}

std::string unknown_column(std::string_view name, const std::vector<std::string>& header) {
  std::vector<std::string> close;
  const std::size_t reach = name.size() / 3;  // letters that may differ
  for (const auto& candidate : header)
    if (edit_distance(name, candidate) <= reach) close.push_back(candidate);
  const auto question =
      close.empty() ? std::string() : fmt::format("; did you mean {}?", shown_list(close, 3));
  return fmt::format("no column {}{} The columns are {}", shown(name),
                     close.empty() ? "." : question, shown_list(header));
}

}  // namespace mercer::data
