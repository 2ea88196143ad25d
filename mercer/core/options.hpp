// Options are small structs beside their algorithm, each with one `visit_fields` that lists its
// fields; command line, JSON and validation all read that list.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "mercer/core/error.hpp"

namespace mercer {

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

namespace detail {
template <class T, class Rule>
void check_field(std::string_view name, const T& value, Rule) {
  if (!Rule::holds(value))
    throw InvalidArgument(fmt::format("{} is {}, but must be {}", name, value, Rule::text));
}
template <class T, class Rule>
void check_field(std::string_view name, const std::optional<T>& value, Rule rule) {
  if (value) check_field(name, *value, rule);
}
}  // namespace detail

/// Throws InvalidArgument naming the first field that breaks its rule.
template <class Options>
void validate(const Options& options) {
  auto copy = options;
  visit_fields(copy, [](std::string_view name, auto& value, auto rule) {
    detail::check_field(name, value, rule);
  });
}

}  // namespace mercer
