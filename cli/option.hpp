// One field of an options struct (mercer/core/options.hpp) as the command line sees it: its flag,
// its words for the help page, and ways to set and to show its value.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/options_json.hpp"
#include "mercer/core/options_text.hpp"

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
      take_words<Rule>(flag, words, value);
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
