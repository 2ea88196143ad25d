// Options from texts, read by the list of their fields (options.hpp): words of a command line,
// strings of the C interface.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/options.hpp"

namespace mercer {

// `label` is what messages call the option: "--noise" or "`noise`".

template <class T>
T parse_number(const std::string& label, std::string_view text);
extern template double parse_number(const std::string&, std::string_view);
extern template int parse_number(const std::string&, std::string_view);
extern template std::int64_t parse_number(const std::string&, std::string_view);
extern template std::uint64_t parse_number(const std::string&, std::string_view);
/// true, false.
bool parse_flag(const std::string& label, std::string_view text);
/// "8G"
std::uint64_t parse_size(const std::string& label, const std::string& text);
/// "0.1,1,10" cut at its commas; an empty part is refused. A part in quotes may hold commas, and a
/// quote written twice: "a,b",c has two parts.
std::vector<std::string> split_at_commas(const std::string& label, const std::string& text);
/// A number, or the numbers of FROM:TO:COUNT.
std::vector<double> parse_grid(const std::string& label, const std::string& word);

/// The value of one word.
template <class Rule, class T>
T parse_value(const std::string& label, const std::string& text) {
  if constexpr (std::is_same_v<Rule, Bytes>)
    return static_cast<T>(parse_size(label, text));
  else if constexpr (std::is_same_v<T, std::string>)
    return text.empty() ? throw InvalidArgument(fmt::format("{} is empty", label)) : text;
  else if constexpr (std::is_same_v<T, bool>)
    return parse_flag(label, text);
  else if constexpr (std::is_floating_point_v<T>)
    return parse_number<double>(label, text);
  else if constexpr (std::is_unsigned_v<T>)
    return parse_number<std::uint64_t>(label, text);
  else if constexpr (std::is_same_v<T, int>)
    return parse_number<int>(label, text);
  else
    return parse_number<std::int64_t>(label, text);
}

/// Sets a value from the words that were given for it. A list takes all of them and cuts each at
/// its commas, any other value takes the last.
template <class Rule, class T>
void take_words(const std::string& label, const std::vector<std::string>& words, T& value) {
  if constexpr (is_optional<T>) {
    value = parse_value<Rule, typename T::value_type>(label, words.back());
  } else if constexpr (is_list<T>) {
    value.clear();
    for (const auto& word : words)
      for (const auto& part : split_at_commas(label, word))
        if constexpr (std::is_same_v<Rule, PositiveGrid>)
          for (const double number : parse_grid(label, part)) value.push_back(number);
        else
          value.push_back(parse_value<Rule, typename T::value_type>(label, part));
  } else {
    value = parse_value<Rule, T>(label, words.back());
  }
}

/// Sets the field of this name from its text and checks it; false when there is no such field.
/// Throws InvalidArgument naming the field when it cannot have this value.
template <class Options>
bool set_option(Options& options, std::string_view name, const std::string& text) {
  bool found = false;
  visit_fields(options, [&](const Field& field, auto& value, const auto& rule) {
    if (field.name != name) return;
    found = true;
    take_words<std::decay_t<decltype(rule)>>(fmt::format("`{}`", name), {text}, value);
    check_field(field, value, rule);
  });
  return found;
}

/// The names of all fields, in the order of the list.
template <class Options>
std::vector<std::string> option_names(const Options& options) {
  auto copy = options;
  std::vector<std::string> names;
  visit_fields(
      copy, [&](const Field& field, const auto&, const auto&) { names.emplace_back(field.name); });
  return names;
}

}  // namespace mercer
