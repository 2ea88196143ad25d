#include "mercer/models/input_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/data/text.hpp"

namespace mercer::models {
namespace {

// A number whose missing cells have an input of their own, "b=missing": its name stands for both.
std::string number_name(const data::InputColumn& column) {
  return column.width() > 1 && !column.categorical ? column.name + "=value" : column.name;
}

}  // namespace

kernels::InputNames input_names(const data::Schema& schema) {
  kernels::InputNames out{schema.dimension(), {}};
  Index first = 0;
  for (const auto& column : schema.inputs) {
    out.entries.push_back({column.name, first, column.width()});
    first += column.width();
  }
  const auto encoded = schema.encoded_names();
  Index place = 0;
  for (const auto& column : schema.inputs)
    for (Index level = 0; level < column.width(); ++level, ++place)
      if (column.categorical || level > 0)
        out.entries.push_back({encoded[static_cast<std::size_t>(place)], place, 1});
      else if (column.width() > 1)
        out.entries.push_back({number_name(column), place, 1});
  return out;
}

std::vector<Index> isotropic_columns(const std::vector<std::string>& names,
                                     const data::Schema& schema) {
  std::vector<Index> columns;
  std::vector<std::string> inputs;
  for (const auto& column : schema.inputs) inputs.push_back(column.name);
  for (const auto& name : names) {
    const auto found = std::find(inputs.begin(), inputs.end(), name);
    const auto& dropped = schema.dropped_constant;
    if (found == inputs.end() && std::find(dropped.begin(), dropped.end(), name) != dropped.end())
      throw InvalidArgument(fmt::format(
          "`isotropic` names {}, which was left out because it has one value only; leave it out "
          "there too",
          data::shown(name)));
    if (found == inputs.end())
      throw InvalidArgument(fmt::format("`isotropic` names a column that is no input: {}",
                                        data::unknown_column(name, inputs)));
    Index first = 0;
    for (auto before = schema.inputs.begin(); before->name != name; ++before)
      first += before->width();
    if (schema.inputs[static_cast<std::size_t>(found - inputs.begin())].categorical)
      throw InvalidArgument(
          fmt::format("`isotropic` names {}, which holds categories: it is for numbers in one unit",
                      data::shown(name)));
    if (std::find(columns.begin(), columns.end(), first) != columns.end())
      throw InvalidArgument(fmt::format("`isotropic` names {} twice", data::shown(name)));
    columns.push_back(first);
  }
  if (columns.size() == 1)
    throw InvalidArgument(fmt::format(
        "`isotropic` names {} only; it takes two inputs or more, such as x and y of a map",
        data::shown(names[0])));
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::vector<std::string> isotropic_names(const std::vector<std::string>& names,
                                         const data::Schema& schema) {
  auto out = names;
  for (auto& name : out)
    for (const auto& column : schema.inputs)
      if (column.name == name) {
        name = number_name(column);
        break;
      }
  return out;
}

}  // namespace mercer::models
