#include "mercer/data/text.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// Whether the UTF-8 sequence at the start of `text` turns the direction of writing, or is a
/// control character of a terminal: U+0080 to U+009F, U+200E and F, U+202A to E, U+2066 to 9.
bool steers(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (length == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (length != 3 || byte(0) != 0xE2) return false;
  const unsigned char last = byte(2);
  if (byte(1) == 0x80) return last == 0x8E || last == 0x8F || (last >= 0xAA && last <= 0xAE);
  return byte(1) == 0x81 && last >= 0xA6 && last <= 0xA9;
}

/// The same sequence as \x1b, \u202e; `length` 0: a byte that is not UTF-8.
std::string escaped(std::string_view text, std::size_t length, Plain plain) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(text[i]) & 0xFFU; };
  if (length == 3)
    return fmt::format("\\u{:04x}",
                       (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU));
  const unsigned code = length == 2 ? (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU) : byte(0);
  return plain == Plain::json ? fmt::format("\\u{:04x}", code) : fmt::format("\\x{:02x}", code);
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

std::string unquoted(std::string_view content, bool doubled_quotes) {
  std::string out;
  out.reserve(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    out += content[i];
    if (doubled_quotes && content[i] == '"') ++i;  // "" stands for one quote
  }
  return out;
}

bool is_decimal_comma(std::string_view text) {
  return std::count(text.begin(), text.end(), ',') == 1 &&
         text.find_first_not_of("0123456789,-+eE") == std::string_view::npos;
}

namespace {

/// Takes things off the front of a text, one after the other.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  /// A number of so many digits.
  bool digits(std::size_t least, std::size_t most, int& value) {
    std::size_t count = 0;
    for (value = 0; count < most && count < text_.size() && is_digit(text_[count]); ++count)
      value = 10 * value + (text_[count] - '0');
    const bool enough = count >= least;
    if (enough) text_.remove_prefix(count);
    return enough;
  }
  bool one_of(std::string_view characters, char& found) {
    if (text_.empty() || characters.find(text_[0]) == std::string_view::npos) return false;
    found = text_[0];
    text_.remove_prefix(1);
    return true;
  }
  bool next(char c) {
    char found = 0;
    return one_of({&c, 1}, found);
  }
  bool done() const { return text_.empty(); }
  std::string_view rest() const { return text_; }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string_view text_;
};

bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int days_in_month(int year, int month) {
  constexpr std::array days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

/// Days since 1970-01-01 in the Gregorian calendar. Years that begin in March put the leap day at
/// their end; eras are of 400 years. Source: Hinnant, chrono-compatible low-level date algorithms.
int days_of(int year, int month, int day) {
  const int y = year - (month <= 2 ? 1 : 0);
  const int era = (y >= 0 ? y : y - 399) / 400;
  const int year_of_era = y - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

/// 12:30, 12:30:15.5, with Z or +02:00: its share of a day; false if it is not that.
bool parse_time(Scanner& in, double& share) {
  int hour = 0, minute = 0;
  if (!in.digits(2, 2, hour) || !in.next(':') || !in.digits(2, 2, minute)) return false;
  double second = 0;
  if (in.next(':')) {
    const auto rest = in.rest();
    int whole = 0;
    if (!in.digits(2, 2, whole)) return false;
    if (in.next('.'))
      for (int digit = 0; in.digits(1, 1, digit);) continue;
    const auto used = rest.substr(0, rest.size() - in.rest().size());
    const auto parsed = fast_float::from_chars(used.data(), used.data() + used.size(), second);
    if (parsed.ptr != used.data() + used.size()) return false;
  }
  if (hour > 23 || minute > 59 || second >= 60) return false;
  int zone = 0;
  if (char sign = 0; !in.next('Z') && in.one_of("+-", sign)) {
    int zone_hours = 0, zone_minutes = 0;
    if (!in.digits(2, 2, zone_hours)) return false;
    in.next(':');
    if (!in.done() && !in.digits(2, 2, zone_minutes)) return false;
    if (zone_hours > 23 || zone_minutes > 59) return false;
    zone = (sign == '-' ? -1 : 1) * (60 * zone_hours + zone_minutes);
  }
  share = (60.0 * (60 * hour + minute - zone) + second) / 86400.0;
  return true;
}

}  // namespace

std::optional<double> parse_date(std::string_view text) {
  Scanner in(trim(text));
  int year = 0, month = 0, day = 0;
  char mark = 0, between = 0;
  if (!in.digits(4, 4, year) || !in.one_of("-/", mark) || !in.digits(1, 2, month) ||
      !in.next(mark) || !in.digits(1, 2, day))
    return {};
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) return {};
  double time = 0;
  if (in.one_of("T ", between) && !parse_time(in, time)) return {};
  if (!in.done()) return {};
  return days_of(year, month, day) + time;
}

bool is_ambiguous_date(std::string_view text) {
  Scanner in(trim(text));
  int number = 0;
  char mark = 0;
  return in.digits(1, 2, number) && in.one_of("/.-", mark) && in.digits(1, 2, number) &&
         in.next(mark) && in.digits(2, 4, number) && (in.done() || in.next(' '));
}

std::string date_advice(std::string_view text) {
  if (is_ambiguous_date(text))
    return fmt::format(
        "{} may be day, month, year or month, day, year; write the year first, as in 2010-05-31",
        shown(text));
  return fmt::format(
      "{} is not a date; dates are written as 2010-05-31 or 2010/05/31, with a time as in "
      "2010-05-31T12:30:15",
      shown(text));
}

bool is_missing(std::string_view cell) {
  cell = trim(cell);
  if (cell.empty()) return true;
  if (cell.size() > 4) return false;
  for (const std::string_view word : {"nan", "na", "n/a", "#n/a", "null", "none", "?", "-nan"})
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

std::string printable(std::string_view text, Plain plain) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const bool kept = plain != Plain::words && (text[0] == '\n' || text[0] == '\t');
    if (!kept && (length == 0 || steers(text, length)))
      out += escaped(text, length, plain);
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 40;
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > limit) return out + "...'";
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    out += printable(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out + "'";
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ',';
    if (name.find(',') == std::string::npos && !name.starts_with('"')) {
      out += name;
      continue;
    }
    out += '"';
    for (const char c : name) out.append(c == '"' ? 2 : 1, c);
    out += '"';
  }
  return out;
}

bool reads_like_id(std::string_view name) {
  std::string letters;
  for (const char c : name) letters += lower(c);
  for (const std::string_view whole : {"no", "nr", "number", "row", "rownum", "rownumber", "key",
                                       "unnamed: 0", "rownames", "obs", "observation"})
    if (letters == whole) return true;
  return letters.ends_with("id") || letters.ends_with("index") || letters.ends_with("_no") ||
         letters.ends_with("_nr");
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
