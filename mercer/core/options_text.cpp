#include "mercer/core/options_text.hpp"

#include <charconv>
#include <cmath>

#include "mercer/core/memory.hpp"

namespace mercer {
namespace {

template <class T>
constexpr std::string_view kind_of_number() {
  if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else if constexpr (std::is_unsigned_v<T>)
    return "a whole number of 0 or more";
  else
    return "a whole number";
}

/// The part in quotes that begins at `first`; moves `first` to what follows it.
std::string quoted_part(const std::string& label, const std::string& text, std::size_t& first) {
  std::string part;
  for (std::size_t at = first + 1; at < text.size(); ++at) {
    const bool quote = text[at] == '"';
    if (quote && (at + 1 == text.size() || text[at + 1] == ',')) {
      first = at + 1;
      return part;
    }
    if (quote && text[at + 1] != '"') break;
    part += text[at];
    at += quote ? 1 : 0;
  }
  throw InvalidArgument(fmt::format(
      "{}: in '{}' a quote is opened and not closed before a comma; a name with a comma "
      "is written as \"a,b\", a quote in it twice",
      label, text));
}

}  // namespace

template <class T>
T parse_number(const std::string& label, std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const char* first = text.starts_with('+') ? text.data() + 1 : text.data();
  const auto [rest, error] = std::from_chars(first, end, value);
  if (error == std::errc::result_out_of_range)
    throw InvalidArgument(fmt::format("{}: '{}' is out of range", label, text));
  if (error != std::errc{} || rest != end)
    throw InvalidArgument(fmt::format("{}: '{}' is not {}", label, text, kind_of_number<T>()));
  return value;
}
template double parse_number(const std::string&, std::string_view);
template int parse_number(const std::string&, std::string_view);
template std::int64_t parse_number(const std::string&, std::string_view);
template std::uint64_t parse_number(const std::string&, std::string_view);

bool parse_flag(const std::string& label, std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw InvalidArgument(fmt::format("{}: '{}' is neither true nor false", label, text));
}

std::uint64_t parse_size(const std::string& label, const std::string& text) {
  try {
    return parse_bytes(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", label, error.what()));
  }
}

std::vector<std::string> split_at_commas(const std::string& label, const std::string& text) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  while (true) {
    const bool quoted = first < text.size() && text[first] == '"';
    std::string inside = quoted ? quoted_part(label, text, first) : "";
    const std::size_t comma = text.find(',', first);
    parts.push_back(quoted ? std::move(inside) : text.substr(first, comma - first));
    if (parts.back().empty())
      throw InvalidArgument(fmt::format("{}: '{}' has an empty part between commas", label, text));
    if (comma == std::string::npos) return parts;
    first = comma + 1;
  }
}

std::vector<double> parse_grid(const std::string& label, const std::string& word) {
  const auto first = word.find(':');
  if (first == std::string::npos) return {parse_number<double>(label, word)};
  const auto second = word.find(':', first + 1);
  if (second == std::string::npos)
    throw InvalidArgument(
        fmt::format("{}: '{}' is not FROM:TO:COUNT, as in 1e-3:1e2:6", label, word));
  const auto from = parse_number<double>(label, word.substr(0, first));
  const auto to = parse_number<double>(label, word.substr(first + 1, second - first - 1));
  const auto count = parse_number<double>(label, word.substr(second + 1));
  if (!Positive::holds(from) || !Positive::holds(to) || !(count >= 1) || count > 100 ||
      count != std::floor(count))
    throw InvalidArgument(
        fmt::format("{}: '{}' needs two positive ends and a count from 1 to 100", label, word));
  std::vector<double> values;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const double t = count > 1 ? i / (count - 1) : 0;
    values.push_back(std::pow(10, std::log10(from) + t * (std::log10(to) - std::log10(from))));
  }
  return values;
}

}  // namespace mercer
