#include "mercer/data/predict_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "mercer/core/error.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

/// Column names of the file. When neither this file nor the training file had a header and the
/// target is not in this one, the last column is an input and not y.
std::vector<std::string> names_in(const CsvReader& reader, const Schema& schema) {
  std::vector<std::string> names = reader.header();
  if (!reader.info().generated_header || !schema.generated_header) return names;
  const std::string last = fmt::format("x{}", names.size());
  const bool needed = std::any_of(schema.inputs.begin(), schema.inputs.end(),
                                  [&](const InputColumn& column) { return column.name == last; });
  if (needed) names.back() = last;
  return names;
}

}  // namespace

PredictStream::PredictStream(const std::string& path, Schema schema, PredictOptions options)
    : PredictStream(CsvReader(path, options.csv), std::move(schema), options) {}

PredictStream::PredictStream(CsvReader reader, Schema schema, PredictOptions options)
    : reader_(std::move(reader)), schema_(std::move(schema)), options_(std::move(options)) {
  const auto names = names_in(reader_, schema_);
  std::unordered_map<std::string_view, Index> places;
  for (std::size_t j = 0; j < names.size(); ++j) places.emplace(names[j], static_cast<Index>(j));
  CsvSelection selection;
  const auto add = [&](const std::string& name, bool text) {
    const auto found = places.find(name);
    if (found == places.end())
      throw DataError(
          fmt::format("{}: a column that the model needs is not there{}: {}", reader_.name(),
                      reader_.info().generated_header ? " (the file has no header)" : "",
                      unknown_column(name, names)));
    auto& list = text ? selection.text : selection.numeric;
    list.push_back(found->second);
    return static_cast<Index>(list.size()) - 1;
  };
  const auto keep_levels = [&](const std::vector<std::string>& levels) {
    for (const auto& level : levels)
      if (is_missing(level)) selection.not_missing.push_back(level);
  };
  for (const auto& column : schema_.inputs) {
    slots_.push_back(add(column.name, column.categorical || column.date));
    keep_levels(column.levels);
  }
  if (options_.drop_missing)
    for (const auto& name : options_.also_complete) complete_slots_.push_back(add(name, true));
  keep_levels(schema_.target_levels);
  has_target_ = options_.target == TargetUse::required ||
                (options_.target == TargetUse::if_present && places.count(schema_.target) > 0);
  if (has_target_) target_slot_ = add(schema_.target, !schema_.target_levels.empty());
  const auto add_if_there = [&](const std::string& name) {
    return name.empty() || places.count(name) == 0 ? Index{-1} : add(name, false);
  };
  noise_slot_ = add_if_there(schema_.noise_column);
  count_slot_ = add_if_there(schema_.count_column);
  numeric_columns_ = static_cast<Index>(selection.numeric.size());
  choose_carried(names, selection);
  selection.hint = [](const std::string&) {
    return std::string("the model was fitted with numbers in this column");
  };
  reader_.select(std::move(selection));
}

void PredictStream::choose_carried(const std::vector<std::string>& names, CsvSelection& selection) {
  std::vector<bool> taken(names.size(), false);
  const auto take = [&](std::size_t column) {
    taken[column] = true;
    selection.raw.push_back(static_cast<Index>(column));
    carried_names_.push_back(names[column]);
  };
  for (const auto& name : options_.carry) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw DataError(fmt::format("{}: {}", reader_.name(), unknown_column(name, names)));
    const auto column = static_cast<std::size_t>(found - names.begin());
    if (taken[column])
      throw InvalidArgument(fmt::format("column {} is named twice; name it once", shown(name)));
    take(column);
  }
  const auto id = std::find(names.begin(), names.end(), schema_.id_column);
  if (options_.carry_id && id != names.end() &&
      !taken[static_cast<std::size_t>(id - names.begin())])
    take(static_cast<std::size_t>(id - names.begin()));
  for (std::size_t column = 0; options_.carry_all && column < names.size(); ++column)
    if (!taken[column]) take(column);
}

bool PredictStream::next(RowBlock& block, Index max_rows) {
  while (reader_.next(raw_, max_rows)) {
    kept_.clear();
    for (Index row = 0; row < raw_.rows; ++row)
      if (keep_row(raw_, row)) kept_.push_back(row);
    if (kept_.empty()) continue;
    encode(raw_, block);
    return true;
  }
  block = {};
  return false;
}

bool PredictStream::missing(const CsvBlock& raw, Index row, bool text, Index slot) const {
  return text ? raw.text[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)].empty()
              : std::isnan(raw.values[static_cast<std::size_t>(row * numeric_columns_ + slot)]);
}

/// False if the row is to be left out; throws if something is missing that may not be.
bool PredictStream::keep_row(const CsvBlock& raw, Index row) {
  const auto r = static_cast<std::size_t>(row);
  if (has_target_ && missing(raw, row, !schema_.target_levels.empty(), target_slot_)) {
    ++rows_missing_target_;
    return false;
  }
  for (std::size_t j = 0; j < schema_.inputs.size(); ++j) {
    const auto& column = schema_.inputs[j];
    if (!missing(raw, row, column.categorical || column.date, slots_[j])) continue;
    if (!options_.drop_missing && column.fills()) continue;
    if (!options_.drop_missing)
      throw DataError(
          fmt::format("{}: the value is missing; fill it in, leave such rows out with "
                      "`drop_missing`, or fit with `impute=median` or `impute=level`",
                      reader_.place(raw.lines[r], column.name)));
    ++rows_dropped_missing_;
    return false;
  }
  const bool complete = std::none_of(complete_slots_.begin(), complete_slots_.end(),
                                     [&](Index slot) { return missing(raw, row, true, slot); });
  if (!complete) ++rows_dropped_missing_;
  return complete;
}

Index PredictStream::level(const CsvBlock& raw, Index row, Index slot, const std::string& column,
                           const std::vector<std::string>& levels) const {
  const auto& text = raw.text[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)];
  const Index found = level_index(levels, text);
  if (found < 0)
    throw DataError(
        fmt::format("{}: {} was not seen when the model was fitted; the known levels are {}. "
                    "Correct it, leave the row out, or fit again with rows that have it",
                    reader_.place(raw.lines[static_cast<std::size_t>(row)], column), shown(text),
                    shown_list(levels)));
  return found;
}

double PredictStream::number(const CsvBlock& raw, Index row, Index slot, const std::string& column,
                             ColumnRole role) const {
  const double value = raw.values[static_cast<std::size_t>(row * numeric_columns_ + slot)];
  const auto place = [&] {
    return reader_.place(raw.lines[static_cast<std::size_t>(row)], column);
  };
  if (const auto why = fault(role, value); !why.empty())
    throw DataError(fmt::format("{}: {}", place(), why));
  if (std::abs(value) > largest_value)
    throw DataError(
        fmt::format("{}: {} is too large to work with; use other units", place(), value));
  return value;
}

/// One raw column of a row as the encoded inputs `out`, which are zero.
void PredictStream::encode_input(const CsvBlock& raw, Index row, std::size_t j, VectorView out) {
  const InputColumn& column = schema_.inputs[j];
  const bool text = column.categorical || column.date;
  const auto slot = slots_[j];
  if (missing(raw, row, text, slot)) {
    ++cells_filled_;
    if (column.categorical)
      out[level_index(column.levels, column.fill_level)] = 1;
    else
      out[0] = *column.fill;
    if (column.missing_input) out[1] = 1;
  } else if (column.categorical) {
    out[level(raw, row, slot, column.name, column.levels)] = 1;
  } else if (column.date) {
    const auto& cell = raw.text[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)];
    const auto days = parse_date(cell);
    if (!days)
      throw DataError(fmt::format(
          "{}: {}", reader_.place(raw.lines[static_cast<std::size_t>(row)], column.name),
          date_advice(cell)));
    out[0] = *days;
  } else {
    out[0] = number(raw, row, slot, column.name);
  }
}

void PredictStream::encode(const CsvBlock& raw, RowBlock& block) {
  const auto count = static_cast<Index>(kept_.size());
  block.inputs = Matrix::Zero(count, schema_.dimension());
  block.target.resize(has_target_ ? count : 0);
  block.noise.variance.resize(noise_slot_ < 0 ? 0 : count);
  block.noise.count.resize(count_slot_ < 0 ? 0 : count);
  block.lines.resize(kept_.size());
  block.numbers.resize(kept_.size());
  block.carried.resize(raw.raw.size());
  for (auto& column : block.carried) column.resize(kept_.size());
  const Index rows_before = reader_.info().rows - raw.rows;
  for (Index i = 0; i < count; ++i) {
    const Index row = kept_[static_cast<std::size_t>(i)];
    block.lines[static_cast<std::size_t>(i)] = raw.lines[static_cast<std::size_t>(row)];
    block.numbers[static_cast<std::size_t>(i)] = rows_before + row + 1;
    for (std::size_t j = 0; j < raw.raw.size(); ++j)
      block.carried[j][static_cast<std::size_t>(i)] = raw.raw[j][static_cast<std::size_t>(row)];
    Index offset = 0;
    for (std::size_t j = 0; j < schema_.inputs.size(); ++j) {
      const Index width = schema_.inputs[j].width();
      encoded_.setZero(width);
      encode_input(raw, row, j, encoded_);
      block.inputs.row(i).segment(offset, width) = encoded_.transpose();
      offset += width;
    }
    if (noise_slot_ >= 0)
      block.noise.variance[i] =
          number(raw, row, noise_slot_, schema_.noise_column, ColumnRole::noise);
    if (count_slot_ >= 0)
      block.noise.count[i] = number(raw, row, count_slot_, schema_.count_column, ColumnRole::count);
    if (!has_target_) continue;
    if (schema_.log_target)
      if (const auto why = log_fault(number(raw, row, target_slot_, schema_.target)); !why.empty())
        throw DataError(fmt::format(
            "{}: {}", reader_.place(raw.lines[static_cast<std::size_t>(row)], schema_.target),
            why));
    block.target[i] = schema_.target_levels.empty()
                          ? number(raw, row, target_slot_, schema_.target)
                          : static_cast<double>(level(raw, row, target_slot_, schema_.target,
                                                      schema_.target_levels));
  }
}

}  // namespace mercer::data
