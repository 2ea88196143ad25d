#include "mercer/data/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "mercer/core/error.hpp"
#include "mercer/data/data_json.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  if (!object.is_object()) throw ModelFileError("schema: an object was expected");
  const auto found = object.find(key);
  if (found == object.end()) throw ModelFileError(fmt::format("schema: '{}' is missing", key));
  return *found;
}

std::string text_member(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    throw ModelFileError(fmt::format("schema: '{}' is not a name", key));
  return value.get<std::string>();
}

bool flag_member(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_boolean())
    throw ModelFileError(fmt::format("schema: '{}' is not true or false", key));
  return value.get<bool>();
}

std::vector<std::string> list_member(const json& object, const char* key) {
  const json& value = member(object, key);
  const bool good =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const json& item) {
        return item.is_string() && !item.get_ref<const std::string&>().empty();
      });
  if (!good) throw ModelFileError(fmt::format("schema: '{}' is not a list of names", key));
  return value.get<std::vector<std::string>>();
}

std::vector<std::string> levels_member(const json& object, const char* key) {
  auto levels = list_member(object, key);
  if (std::adjacent_find(levels.begin(), levels.end(), std::greater_equal<>()) != levels.end())
    throw ModelFileError(fmt::format("schema: '{}' is not sorted, or repeats a level", key));
  return levels;
}

/// What a missing cell is read as: a number, or one of the levels.
void read_fill(const json& item, InputColumn& column) {
  if (!item.contains("fill")) return;
  const json& fill = item.at("fill");
  const auto bad = [&] {
    return ModelFileError(
        fmt::format("schema: 'fill' of column {} is not one of its values", shown(column.name)));
  };
  if (column.categorical) {
    if (!fill.is_string()) throw bad();
    column.fill_level = fill.get<std::string>();
    if (level_index(column.levels, column.fill_level) < 0) throw bad();
  } else {
    if (!fill.is_number() || !(std::abs(fill.get<double>()) <= largest_value)) throw bad();
    column.fill = fill.get<double>();
  }
}

void check_names(const Schema& schema) {
  if (schema.inputs.empty()) throw ModelFileError("schema: there is no input column");
  std::unordered_set<std::string_view> seen = {schema.target};
  const auto add = [&](const std::string& name) {
    if (!name.empty() && !seen.insert(name).second)
      throw ModelFileError(fmt::format("schema: column {} is there twice", shown(name)));
  };
  for (const auto& column : schema.inputs) add(column.name);
  add(schema.noise_column);
  add(schema.count_column);
  add(schema.id_column);
}

}  // namespace

Index Schema::dimension() const {
  Index total = 0;
  for (const auto& column : inputs) total += column.width();
  return total;
}

std::vector<std::string> Schema::encoded_names() const {
  std::vector<std::string> names;
  for (const auto& column : inputs) {
    if (!column.categorical) names.push_back(column.name);
    if (column.missing_input) names.push_back(column.name + "=missing");
    for (const auto& level : column.levels) names.push_back(column.name + "=" + level);
  }
  return names;
}

Index level_index(const std::vector<std::string>& levels, std::string_view text) {
  const auto found = std::lower_bound(levels.begin(), levels.end(), text);
  return found != levels.end() && *found == text ? found - levels.begin() : -1;
}

void to_json(json& out, const Schema& schema) {
  json inputs = json::array();
  for (const auto& column : schema.inputs) {
    json item = {{"name", column.name}};
    if (column.categorical) item["levels"] = column.levels;
    if (column.date) item["date"] = true;
    if (column.fill) item["fill"] = *column.fill;
    if (!column.fill_level.empty()) item["fill"] = column.fill_level;
    if (column.missing_input) item["missing_input"] = true;
    inputs.push_back(std::move(item));
  }
  out = {{"inputs", std::move(inputs)},
         {"target", schema.target},
         {"target_levels", schema.target_levels},
         {"dropped_constant", schema.dropped_constant},
         {"generated_header", schema.generated_header}};
  if (!schema.noise_column.empty()) out["noise_column"] = schema.noise_column;
  if (!schema.count_column.empty()) out["count_column"] = schema.count_column;
  if (schema.log_target) out["log_target"] = true;
  if (!schema.id_column.empty()) out["id_column"] = schema.id_column;
}

void from_json(const json& in, Schema& schema) {
  Schema result;
  result.target = text_member(in, "target");
  result.target_levels = levels_member(in, "target_levels");
  result.dropped_constant = list_member(in, "dropped_constant");
  result.generated_header = flag_member(in, "generated_header");
  if (in.contains("noise_column")) result.noise_column = text_member(in, "noise_column");
  if (in.contains("count_column")) result.count_column = text_member(in, "count_column");
  if (in.contains("id_column")) result.id_column = text_member(in, "id_column");
  if (in.contains("log_target")) result.log_target = flag_member(in, "log_target");
  if (result.log_target && !result.target_levels.empty())
    throw ModelFileError("schema: a target of classes has no logarithm");
  const json& inputs = member(in, "inputs");
  if (!inputs.is_array()) throw ModelFileError("schema: 'inputs' is not a list");
  for (const json& item : inputs) {
    InputColumn column;
    column.name = text_member(item, "name");
    column.categorical = item.contains("levels");
    if (column.categorical) column.levels = levels_member(item, "levels");
    if (column.categorical && column.levels.empty())
      throw ModelFileError(fmt::format("schema: column {} has no levels", shown(column.name)));
    column.date = item.contains("date") && flag_member(item, "date");
    column.missing_input = item.contains("missing_input") && flag_member(item, "missing_input");
    read_fill(item, column);
    if (column.categorical && (column.date || column.missing_input))
      throw ModelFileError(
          fmt::format("schema: column {} holds both texts and numbers", shown(column.name)));
    if (column.missing_input && !column.fill)
      throw ModelFileError(fmt::format("schema: column {} has no 'fill'", shown(column.name)));
    result.inputs.push_back(std::move(column));
  }
  check_names(result);
  schema = std::move(result);
}

}  // namespace mercer::data
