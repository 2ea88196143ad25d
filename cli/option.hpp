// One field of an options struct (mercer/core/options.hpp) as the command line sees it: its flag,
// its words for the help page, and ways to set and to show its value.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/options_json.hpp"

namespace mercer::cli {

/// Keeps the order in which fields are set.
using Json = nlohmann::ordered_json;

struct Option {
  std::string name;  // of the field: max_iterations
  std::string word;  // stands for the value: I
  std::string help;
  std::string default_text;          // of the value, or what holds when it is unset; may be empty
  std::vector<std::string> choices;  // names that the value may have; empty: no list
  bool open = false;                 // choices only begin the value
  bool is_flag = false;
  bool is_list = false;
  bool on_by_default = false;  // a flag: --no-merge switches it off
  bool for_users = false;
  Affects affects = Affects::result;
  const void* value = nullptr;

  std::function<void(const std::vector<std::string>&)> take;  // the words after the flag
  std::function<void(bool)> set;                              // a flag
  std::function<void(const Json&)> read;
  std::function<Json()> json;
  std::function<void()> check;  // throws InvalidArgument when the value breaks its rule

  /// "--max-iterations", "-n", "--no-merge".
  std::string flag() const;
  /// For help pages: choices, help and default.
  std::string text() const;
};

namespace detail {

template <class T>
T parse_number(const std::string& flag, std::string_view text);
extern template double parse_number(const std::string&, std::string_view);
extern template int parse_number(const std::string&, std::string_view);
extern template std::int64_t parse_number(const std::string&, std::string_view);
extern template std::uint64_t parse_number(const std::string&, std::string_view);
std::uint64_t parse_size(const std::string& flag, const std::string& text);
/// "0.1,1,10" cut at its commas; an empty part is refused.
std::vector<std::string> split_at_commas(const std::string& flag, const std::string& text);
/// A number, or the numbers of FROM:TO:COUNT.
std::vector<double> parse_grid(const std::string& flag, const std::string& word);

/// The value of one word.
template <class Rule, class T>
T parse(const std::string& flag, const std::string& text) {
  if constexpr (std::is_same_v<Rule, Bytes>)
    return static_cast<T>(parse_size(flag, text));
  else if constexpr (std::is_same_v<T, std::string>)
    return text.empty() ? throw InvalidArgument(fmt::format("{} is empty", flag)) : text;
  else if constexpr (std::is_floating_point_v<T>)
    return parse_number<double>(flag, text);
  else if constexpr (std::is_unsigned_v<T>)
    return parse_number<std::uint64_t>(flag, text);
  else if constexpr (std::is_same_v<T, int>)
    return parse_number<int>(flag, text);
  else
    return parse_number<std::int64_t>(flag, text);
}

template <class Rule, class T>
void take_words(const std::string& flag, const std::vector<std::string>& words, T& value) {
  if constexpr (is_optional<T>) {
    value = parse<Rule, typename T::value_type>(flag, words.back());
  } else if constexpr (is_list<T>) {
    value.clear();
    for (const auto& word : words)
      for (const auto& part : split_at_commas(flag, word))
        if constexpr (std::is_same_v<Rule, PositiveGrid>)
          for (const double number : parse_grid(flag, part)) value.push_back(number);
        else
          value.push_back(parse<Rule, typename T::value_type>(flag, part));
  } else {
    value = parse<Rule, T>(flag, words.back());
  }
}

}  // namespace detail

/// `value` must outlive the option.
template <class T, class Rule>
Option make_option(const Field& field, T& value, const Rule& rule) {
  Option option;
  option.name = field.name;
  option.word = field.word;
  option.help = field.help;
  option.for_users = field.for_users();
  option.affects = field.affects;
  option.value = &value;
  if constexpr (std::is_same_v<Rule, OneOf> || std::is_same_v<Rule, BeginsWith>)
    option.choices = rule.names;
  option.open = std::is_same_v<Rule, BeginsWith>;
  option.is_list = is_list<T>;
  if constexpr (std::is_same_v<T, bool>) {
    option.is_flag = true;
    option.on_by_default = value;
    option.set = [&value](bool on) { value = on; };
  } else {
    option.default_text = value_text(value);
    if (option.default_text.empty()) option.default_text = field.unset;
    option.take = [&value, flag = option.flag()](const std::vector<std::string>& words) {
      detail::take_words<Rule>(flag, words, value);
    };
  }
  option.read = [&value](const Json& json) { read_json<Rule>(json, value); };
  option.json = [&value] { return value_json<Json>(value); };
  option.check = [field, &value, rule] { check_field(field, value, rule); };
  return option;
}

/// The fields of a struct, those that users do not see included.
template <class Options>
std::vector<Option> list_options(Options& options) {
  std::vector<Option> list;
  visit_fields(options, [&](const Field& field, auto& value, const auto& rule) {
    list.push_back(make_option(field, value, rule));
  });
  return list;
}

}  // namespace mercer::cli
