// Options as JSON, read from and written by the list of their fields (options.hpp).
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "mercer/core/memory.hpp"
#include "mercer/core/options.hpp"

namespace mercer {

/// A value as JSON: null where it is unset.
template <class Json, class T>
Json value_json(const T& value) {
  if constexpr (is_optional<T>)
    return value ? Json(*value) : Json(nullptr);
  else
    return Json(value);
}

/// {"kernel": "matern52", "tolerance": 1e-06, ...}: every field but those that affect nothing.
template <class Json = nlohmann::json, class Options>
Json options_json(const Options& options) {
  auto copy = options;
  Json json = Json::object();
  visit_fields(copy, [&](const Field& field, const auto& value, const auto&) {
    if (field.affects != Affects::nothing) json[std::string(field.name)] = value_json<Json>(value);
  });
  return json;
}

namespace detail {

/// What a value of this type is, in words.
template <class T, class Rule>
constexpr const char* kind_of() {
  if constexpr (is_optional<T>)
    return kind_of<typename T::value_type, Rule>();
  else if constexpr (std::is_same_v<Rule, Bytes>)
    return "a number of bytes, or a text such as \"8G\"";
  else if constexpr (is_list<T>)
    return std::is_same_v<typename T::value_type, std::string> ? "a list of texts"
                                                               : "a list of numbers";
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else if constexpr (std::is_unsigned_v<T>)
    return "a whole number of 0 or more";
  else if constexpr (std::is_integral_v<T>)
    return "a whole number";
  else
    return "a text";
}

/// False when the JSON is of another type, or a number that T cannot hold.
template <class Rule, class Json, class T>
bool read_value(const Json& json, T& value) {
  if constexpr (is_optional<T>) {
    typename T::value_type inner{};
    if (!read_value<Rule>(json, inner)) return false;
    value = std::move(inner);
  } else if constexpr (is_list<T>) {
    // A single value is a list of one.
    T list;
    for (const auto& entry : json.is_array() ? json : Json::array({json}))
      if (!read_value<Rule>(entry, list.emplace_back())) return false;
    value = std::move(list);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    value = json.template get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return false;
    value = json.template get<T>();
  } else if constexpr (std::is_integral_v<T>) {
    if (std::is_same_v<Rule, Bytes> && json.is_string()) {
      value = static_cast<T>(parse_bytes(json.template get<std::string>()));
      return true;
    }
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned()) {
      const auto number = json.template get<std::uint64_t>();
      if (!std::in_range<T>(number)) return false;
      value = static_cast<T>(number);
    } else {
      const auto number = json.template get<std::int64_t>();
      if (!std::in_range<T>(number)) return false;
      value = static_cast<T>(number);
    }
  } else {
    if (!json.is_string() || json.template get_ref<const std::string&>().empty()) return false;
    value = json.template get<std::string>();
  }
  return true;
}

}  // namespace detail

/// Sets the value from JSON; null leaves it as it is. Throws InvalidArgument when the JSON is of
/// another type.
template <class Rule, class Json, class T>
void read_json(const Json& json, T& value) {
  if (json.is_null()) return;
  if (!detail::read_value<Rule>(json, value))
    throw InvalidArgument(
        fmt::format("must be {}, but is {}", detail::kind_of<T, Rule>(), json.dump()));
}

}  // namespace mercer
