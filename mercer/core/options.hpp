// Options are small structs beside their algorithm. Each has one `visit_fields` that lists its
// fields; command line, configuration file, JSON record, run identity, validation and the page
// docs/options.md all read that list, so that a field is written once:
//
//   template <class Visitor>
//   void visit_fields(CgOptions& o, Visitor&& field) {
//     field({"tolerance", "E", "stop at |b - A x| <= E |b|"}, o.tolerance, BelowOne{});
//     field("window", o.window, Positive{});  // no words: not for users
//   }
//
// A message of the library names an option by its field in backquotes: `max_iterations`, or with a
// value `solver=kcg`. Each face (command line, Python) says that in its own way.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "mercer/core/error.hpp"

MERCER_API_BEGIN
namespace mercer {

/// What a field has a part in.
enum class Affects {
  result,  // the numbers that come out: recorded, and part of the run's identity
  plan,    // the result through the plan only (memory): recorded; the identity has the plan itself
  nothing  // files and display: neither recorded nor part of the identity
};

/// What is said of a field, in words. A field without help is not for users.
struct Field {
  // NOLINTNEXTLINE(google-explicit-constructor): field("name", ...) is the short form
  Field(const char* field_name, std::string value_word = {}, std::string help_text = {},
        std::string when_unset = {}, Affects what = Affects::result)
      : name(field_name),
        word(std::move(value_word)),
        help(std::move(help_text)),
        unset(std::move(when_unset)),
        affects(what) {}

  std::string_view name;  // snake_case
  std::string word;       // stands for the value in help texts: "E"
  std::string help;       // a sentence without line breaks
  std::string unset;      // what holds when there is no value: "the last column"
  Affects affects;

  bool for_users() const { return !help.empty(); }
};

// Rules: `holds` says whether a value may stand in a field, `text` what it must be. The rule of a
// list holds for each of its entries.

struct Any {
  template <class T>
  static bool holds(const T&) {
    return true;
  }
  static constexpr const char* text = "anything";
};
struct Positive {
  template <class T>
  static bool holds(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isfinite(value) && value > 0;
    else
      return value > 0;
  }
  static constexpr const char* text = "positive";
};
struct NonNegative {
  template <class T>
  static bool holds(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isfinite(value) && value >= 0;
    else
      return value >= 0;
  }
  static constexpr const char* text = "zero or positive";
};
/// A tolerance or a share: 1 would ask for nothing.
struct BelowOne {
  static bool holds(double value) { return value > 0 && value < 1; }
  static constexpr const char* text = "positive and below 1";
};
/// A list of positive numbers that may also be said as FROM:TO:COUNT, evenly in logarithm.
struct PositiveGrid : Positive {};
/// A number of bytes, which people write as 8G or 500M.
struct Bytes : Positive {};
/// A name out of a list, which may come from a registry.
struct OneOf {
  std::vector<std::string> names;
  bool holds(std::string_view value) const {
    return std::find(names.begin(), names.end(), value) != names.end();
  }
};
/// A text that begins with one of these names; a parser checks the rest (student-t:df=7).
struct BeginsWith {
  std::vector<std::string> names;
};

namespace detail {

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

template <class T>
inline constexpr bool is_list = detail::IsList<T>::value;
template <class T>
inline constexpr bool is_optional = detail::IsOptional<T>::value;

/// Throws InvalidArgument naming the field when its value breaks the rule.
template <class T, class Rule>
void check_field(const Field& field, const T& value, const Rule& rule) {
  if constexpr (is_optional<T>) {
    if (value) check_field(field, *value, rule);
  } else if constexpr (is_list<T>) {
    for (const auto& entry : value) check_field(field, entry, rule);
  } else if constexpr (std::is_same_v<Rule, OneOf>) {
    if (!rule.holds(value))
      throw InvalidArgument(fmt::format("unknown `{}` '{}'; there are: {}", field.name, value,
                                        fmt::join(rule.names, ", ")));
  } else if constexpr (!std::is_same_v<Rule, Any> && !std::is_same_v<Rule, BeginsWith>) {
    if (!Rule::holds(value))
      throw InvalidArgument(
          fmt::format("`{}` is {}, but must be {}", field.name, value, Rule::text));
  }
}

/// Throws InvalidArgument naming the first field that breaks its rule.
template <class Options>
void validate(const Options& options) {
  auto copy = options;
  visit_fields(copy, [](const Field& field, auto& value, const auto& rule) {
    check_field(field, value, rule);
  });
}

/// A value as text, the same for equal values only: numbers with every digit, nothing for unset.
template <class T>
std::string value_text(const T& value) {
  if constexpr (is_optional<T>)
    return value ? value_text(*value) : std::string();
  else if constexpr (is_list<T>)
    return fmt::format("{}", fmt::join(value, ","));
  else
    return fmt::format("{}", value);
}

/// "kernel=rbf|tolerance=1e-06|...": every field that has a part in the result, for users or not.
/// Two runs on the same data with the same text and the same plan have the same result.
template <class Options>
std::string identity_text(const Options& options) {
  auto copy = options;
  std::string text;
  visit_fields(copy, [&](const Field& field, const auto& value, const auto&) {
    if (field.affects != Affects::result) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : "|", field.name, value_text(value));
  });
  return text;
}

}  // namespace mercer
MERCER_API_END
