#include "mercer/data/column_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mercer/core/error.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

Index find_column(const CsvReader& reader, const std::string& name, const char* option) {
  const auto& header = reader.header();
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end())
    throw DataError(fmt::format("{}: `{}` names a column that is not there: {}", reader.name(),
                                option, unknown_column(name, header)));
  return found - header.begin();
}

/// Columns chosen so far; no column has two roles.
class Choice {
 public:
  Choice(const CsvReader& reader, bool target_named)
      : reader_(reader), target_named_(target_named) {}

  void add(Index place, ColumnRole role) {
    const auto& name = reader_.header()[static_cast<std::size_t>(place)];
    if (const Column* other = at(place)) refuse(name, *other, role);
    if (const auto found = left_out_.find(place); found != left_out_.end())
      throw InvalidArgument(
          fmt::format("`inputs` and `{}` both name column {}; leave it out of one", found->second,
                      shown(name)));
    columns_.emplace_back();
    columns_.back().name = name;
    columns_.back().place = place;
    columns_.back().role = role;
  }
  Column* at(Index place) {
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [&](const Column& c) { return c.place == place; });
    return found == columns_.end() ? nullptr : &*found;
  }
  /// No input; `option` says who left it out.
  void leave_out(Index place, const char* option) {
    const auto& name = reader_.header()[static_cast<std::size_t>(place)];
    if (const Column* other = at(place))
      throw InvalidArgument(fmt::format(
          "column {} is the {}{}, and `{}` names it too; {}", shown(name), to_string(other->role),
          by_default(*other) ? " (the last column, by default)" : "", option,
          by_default(*other) ? "name the column to learn with `target`" : "give it one meaning"));
    if (const auto [found, fresh] = left_out_.emplace(place, option);
        !fresh && found->second != option)
      throw InvalidArgument(fmt::format("`{}` and `{}` both name column {}; leave it out of one",
                                        found->second, option, shown(name)));
  }
  bool left_out(Index place) const { return left_out_.contains(place); }
  std::vector<Column> take() { return std::move(columns_); }

 private:
  bool by_default(const Column& column) const {
    return column.role == ColumnRole::target && !target_named_;
  }
  [[noreturn]] void refuse(const std::string& name, const Column& other, ColumnRole role) const {
    if (other.role == role)
      throw InvalidArgument(fmt::format("`inputs` names column {} twice", shown(name)));
    throw InvalidArgument(
        fmt::format("column {} is both the {}{} and {}; {}", shown(name), to_string(other.role),
                    by_default(other) ? " (the last column, by default)" : "",
                    role == ColumnRole::input ? "an input" : fmt::format("the {}", to_string(role)),
                    other.role == ColumnRole::target
                        ? "name another target with `target`, or another column there"
                        : "give it one meaning"));
  }

  const CsvReader& reader_;
  bool target_named_;
  std::vector<Column> columns_;
  std::map<Index, std::string> left_out_;  // and the option that says so
};

}  // namespace

std::vector<Column> choose_columns(CsvReader& reader, const DataOptions& options) {
  const auto& header = reader.header();
  if (header.size() < 2)
    throw DataError(
        fmt::format("{}: there is one column only, {}; an input and a target are needed, separated "
                    "by commas, semicolons, tabs or bars, or by the `delimiter` that you name",
                    reader.name(), shown(header[0])));
  Choice choice(reader, options.target.has_value());
  const auto last = static_cast<Index>(header.size()) - 1;
  choice.add(options.target ? find_column(reader, *options.target, "target") : last,
             ColumnRole::target);
  if (options.noise_column)
    choice.add(find_column(reader, *options.noise_column, "noise_column"), ColumnRole::noise);
  if (options.count_column)
    choice.add(find_column(reader, *options.count_column, "count_column"), ColumnRole::count);
  if (options.fold_column)
    choice.add(find_column(reader, *options.fold_column, "fold_column"), ColumnRole::fold);
  if (options.id) choice.leave_out(find_column(reader, *options.id, "id"), "id");
  for (const auto& name : options.exclude)
    choice.leave_out(find_column(reader, name, "exclude"), "exclude");
  for (const auto& name : options.inputs)
    choice.add(find_column(reader, name, "inputs"), ColumnRole::input);
  if (options.inputs.empty())
    for (Index place = 0; place <= last; ++place)
      if (choice.at(place) == nullptr && !choice.left_out(place))
        choice.add(place, ColumnRole::input);
  for (const auto& name : options.categorical) {
    Column* column = choice.at(find_column(reader, name, "categorical"));
    if (column == nullptr || is_noise(column->role) || column->role == ColumnRole::fold)
      throw InvalidArgument(fmt::format(
          "`categorical` names {}, which is neither an input nor the target", shown(name)));
    column->categorical = true;
  }
  for (const auto& name : options.dates) {
    Column* column = choice.at(find_column(reader, name, "dates"));
    if (column == nullptr || column->role != ColumnRole::input)
      throw InvalidArgument(fmt::format("`dates` names {}, which is not an input", shown(name)));
    if (column->categorical)
      throw InvalidArgument(fmt::format(
          "`categorical` and `dates` both name column {}; leave it out of one", shown(name)));
    column->date = true;
  }
  auto columns = choice.take();
  for (auto& column : columns)
    column.categorical = column.categorical || column.role == ColumnRole::fold;
  if (std::none_of(columns.begin(), columns.end(),
                   [](const Column& c) { return c.role == ColumnRole::input; }))
    throw DataError(fmt::format(
        "{}: no column is left to learn from: the target is {}, and the options leave out the "
        "others",
        reader.name(), shown(columns[0].name)));
  auto& target = columns[0];
  if (options.text_target && !target.categorical) {
    target.categorical = reader.begins_with_text(target.place);
    target.undecided = options.text_anywhere && !target.categorical;
    target.categorical = target.categorical || target.undecided;
  }
  return columns;
}

CsvSelection selection_of(std::vector<Column>& columns, const std::string& target_advice) {
  CsvSelection selection;
  for (auto& column : columns) {
    auto& list = column.as_text() ? selection.text : selection.numeric;
    column.slot = static_cast<Index>(list.size());
    list.push_back(column.place);
  }
  selection.hint = [columns, target_advice](const std::string& name) {
    if (name == columns[0].name && !target_advice.empty()) return target_advice;
    for (const auto& column : columns)
      if (column.name == name && is_noise(column.role))
        return fmt::format("the {} holds numbers", to_string(column.role));
    return fmt::format("if the column holds categories, say `categorical={}`{}", name,
                       name == columns[0].name ? "" : ", or leave it out with `exclude`");
  };
  return selection;
}

}  // namespace mercer::data
