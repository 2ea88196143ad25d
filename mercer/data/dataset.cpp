#include "mercer/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/data/column_choice.hpp"
#include "mercer/data/equal_rows.hpp"
#include "mercer/data/row_source.hpp"
#include "mercer/data/split.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

std::string plural(Index count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Rows on the way in: pieces of row-major values (codes for categories), target first.
class Loader {
 public:
  Loader(CsvReader& reader, const DataOptions& options)
      : reader_(reader), options_(options), columns_(choose_columns(reader, options)) {
    reader_.select(selection_of(columns_, options.target_advice));
  }

  Dataset load() {
    read_rows(true);
    assemble();
    return std::move(dataset_);
  }

  /// What load() would find out about the columns; no row is kept.
  Schema schema() {
    read_rows(false);
    settle_schema();
    return std::move(dataset_.schema);
  }

 private:
  void read_rows(bool keep) {
    // Pieces of half a megabyte stay in cache while they are turned into columns.
    const Index piece_rows = std::max<Index>(1, 65536 / static_cast<Index>(columns_.size()));
    CsvBlock block;
    while (reader_.next(block, piece_rows)) {
      take_rows(block);
      if (!keep) pieces_.clear();
    }
    dataset_.csv = reader_.info();
    dataset_.rows_read = reader_.info().rows;
    settle_target();
    check_columns();
  }
  void take_rows(const CsvBlock& block);
  bool take_row(const CsvBlock& block, Index row, std::vector<double>& piece);
  double code_of(Column& column, const std::string& text, Index line);
  void settle_target();
  void check_columns();
  void settle_schema();
  void assemble();
  void sort_levels(Column& column, std::vector<Index>& rank);
  Vector& values_of(ColumnRole role) {
    return role == ColumnRole::target  ? dataset_.target
           : role == ColumnRole::noise ? dataset_.noise.variance
                                       : dataset_.noise.count;
  }

  CsvReader& reader_;
  const DataOptions& options_;
  std::vector<Column> columns_;
  std::vector<std::vector<double>> pieces_;
  Index rows_ = 0;
  std::vector<std::vector<Index>> ranks_;  // per column: of the codes, where it holds categories
  std::vector<Index> offsets_;             // per column: first encoded one; -1: dropped
  Dataset dataset_;
};

void Loader::take_rows(const CsvBlock& block) {
  std::vector<double> piece;
  piece.reserve(static_cast<std::size_t>(block.rows) * columns_.size());
  for (Index row = 0; row < block.rows; ++row)
    if (take_row(block, row, piece)) ++rows_;
  if (!piece.empty()) pieces_.push_back(std::move(piece));
}

/// Appends a row to `piece`, unless something is missing in it.
bool Loader::take_row(const CsvBlock& block, Index row, std::vector<double>& piece) {
  const auto r = static_cast<std::size_t>(row);
  const std::size_t width = block.values.size() / static_cast<std::size_t>(block.rows);
  const auto number = [&](const Column& c) {
    return block.values[r * width + static_cast<std::size_t>(c.slot)];
  };
  const auto text = [&](const Column& c) -> const std::string& {
    return block.text[static_cast<std::size_t>(c.slot)][r];
  };
  bool missing_input = false;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    if (is_noise(column.role)) continue;
    if (column.role == ColumnRole::fold && text(column).empty())
      throw DataError(fmt::format("{}: the value is missing; every row needs the name of its fold",
                                  reader_.place(block.lines[r], column.name)));
    if (column.categorical ? !text(column).empty() : !std::isnan(number(column))) continue;
    if (j == 0) {
      ++dataset_.rows_missing_target;
      return false;
    }
    if (!options_.drop_missing)
      throw DataError(fmt::format(
          "{}: the value is missing; fill it in, or leave such rows out with `drop_missing`",
          reader_.place(block.lines[r], column.name)));
    missing_input = true;
  }
  if (missing_input) {
    ++dataset_.rows_dropped_missing;
    return false;
  }
  for (auto& column : columns_) {
    const double value =
        column.categorical ? code_of(column, text(column), block.lines[r]) : number(column);
    if (const auto why = fault(column.role, value); !why.empty())
      throw DataError(fmt::format("{}: {}", reader_.place(block.lines[r], column.name), why));
    if (std::abs(value) > largest_value)
      throw DataError(fmt::format("{}: {} is too large to work with; use other units",
                                  reader_.place(block.lines[r], column.name), value));
    if (options_.log_target && column.role == ColumnRole::target && !column.categorical)
      if (const auto why = log_fault(value); !why.empty())
        throw DataError(fmt::format("{}: {}", reader_.place(block.lines[r], column.name), why));
    column.low = std::min(column.low, value);
    column.high = std::max(column.high, value);
    piece.push_back(value);
  }
  dataset_.row_numbers.push_back(reader_.info().rows - block.rows + row + 1);
  return true;
}

double Loader::code_of(Column& column, const std::string& text, Index line) {
  const auto [found, fresh] =
      column.codes.try_emplace(text, static_cast<Index>(column.levels.size()));
  if (fresh) {
    if (!is_utf8(text))
      throw DataError(fmt::format("{}: {} is not UTF-8; convert the file to UTF-8",
                                  reader_.place(line, column.name), shown(text)));
    if (static_cast<Index>(column.levels.size()) == options_.max_levels &&
        column.role != ColumnRole::fold)
      throw DataError(fmt::format(
          "{}: the column has more than {} different values, too many for a category; "
          "{}",
          reader_.place(line, column.name), options_.max_levels,
          column.role == ColumnRole::target ? "say `task=regression` if they are numbers"
                                            : "leave it out by naming the others with `inputs`"));
    double value = 0;
    if (column.undecided && classify(text, value) == Cell::infinite)
      throw DataError(fmt::format("{}: infinite value {}; leave the cell empty if it is not known",
                                  reader_.place(line, column.name), shown(text)));
    column.levels.push_back(text);
  }
  return static_cast<double>(found->second);
}

/// A target that was read as text, because some may come, holds numbers if there was none.
void Loader::settle_target() {
  Column& target = columns_[0];
  if (!target.undecided) return;
  std::vector<double> values;
  for (const auto& level : target.levels)
    if (double value = 0; classify(level, value) == Cell::number) values.push_back(value);
  if (values.size() < target.levels.size()) return;
  target.categorical = false;
  target.levels.clear();
  for (auto& piece : pieces_)
    for (std::size_t at = 0; at < piece.size(); at += columns_.size())
      piece[at] = values[static_cast<std::size_t>(piece[at])];
  if (values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  target.low = *low;
  target.high = *high;
}

/// Enough rows, a target that varies, an input that varies; the message names what is wrong.
void Loader::check_columns() {
  const Column& target = columns_[0];
  if (options_.log_target && target.categorical)
    throw DataError(
        fmt::format("{}: the target {} holds text, of which there is no logarithm; leave "
                    "`log_target` out, or name a numeric column with `target`",
                    reader_.name(), shown(target.name)));
  if (rows_ < 2)
    throw DataError(fmt::format(
        "{}: {} of {} can be used (missing target: {}, missing input: {}); at least 2 are needed",
        reader_.name(), plural(rows_, "row"), dataset_.rows_read, dataset_.rows_missing_target,
        dataset_.rows_dropped_missing));
  if (target.constant())
    throw DataError(fmt::format(
        "{}: the target {} has the same value {} in all {} rows; there is nothing to learn",
        reader_.name(), shown(target.name),
        target.categorical ? shown(target.levels[0]) : fmt::format("{}", target.low), rows_));
  std::vector<std::string> constant;
  std::size_t inputs = 0;
  for (const auto& column : columns_) {
    if (column.role != ColumnRole::input) continue;
    ++inputs;
    if (column.constant()) constant.push_back(column.name);
  }
  if (constant.size() == inputs)
    throw DataError(fmt::format(
        "{}: all {} rows have the same inputs ({}: one value each); there is nothing to learn from",
        reader_.name(), rows_, shown_list(constant)));
  dataset_.schema.dropped_constant = std::move(constant);
}

/// Sorts the levels; rank[code] is the new place of a code.
void Loader::sort_levels(Column& column, std::vector<Index>& rank) {
  std::sort(column.levels.begin(), column.levels.end());
  rank.resize(column.levels.size());
  for (std::size_t place = 0; place < column.levels.size(); ++place)
    rank[static_cast<std::size_t>(column.codes[column.levels[place]])] = static_cast<Index>(place);
}

void Loader::settle_schema() {
  const std::size_t width = columns_.size();
  ranks_.resize(width);
  offsets_.assign(width, -1);
  Schema& schema = dataset_.schema;
  schema.target = columns_[0].name;
  schema.log_target = options_.log_target;
  schema.id_column = options_.id.value_or("");
  schema.generated_header = reader_.info().generated_header;
  Index dimension = 0;
  for (std::size_t j = 0; j < width; ++j) {
    Column& column = columns_[j];
    if (column.categorical) sort_levels(column, ranks_[j]);
    if (column.role == ColumnRole::noise) schema.noise_column = column.name;
    if (column.role == ColumnRole::count) schema.count_column = column.name;
    if (column.role == ColumnRole::fold) dataset_.fold_names = column.levels;
    if (column.role != ColumnRole::input || column.constant()) continue;
    schema.inputs.push_back({column.name, column.categorical, column.levels});
    offsets_[j] = dimension;
    dimension += schema.inputs.back().width();
  }
  schema.target_levels = columns_[0].levels;
}

/// Turns the pieces into the final matrix, freeing each as it goes.
void Loader::assemble() {
  settle_schema();
  const std::size_t width = columns_.size();
  const Schema& schema = dataset_.schema;
  dataset_.inputs = Matrix::Zero(rows_, schema.dimension());
  dataset_.target.resize(rows_);
  dataset_.noise.variance.resize(schema.noise_column.empty() ? 0 : rows_);
  dataset_.noise.count.resize(schema.count_column.empty() ? 0 : rows_);
  dataset_.fold.resize(dataset_.fold_names.empty() ? 0 : static_cast<std::size_t>(rows_));
  Index first = 0;
  for (auto& piece : pieces_) {
    const auto count = static_cast<Index>(piece.size() / width);
    for (std::size_t j = 0; j < width; ++j) {
      const Column& column = columns_[j];
      if (column.role == ColumnRole::input && offsets_[j] < 0) continue;
      for (Index i = 0; i < count; ++i) {
        const double value = piece[static_cast<std::size_t>(i) * width + j];
        const Index rank = column.categorical ? ranks_[j][static_cast<std::size_t>(value)] : 0;
        if (column.role == ColumnRole::fold)
          dataset_.fold[static_cast<std::size_t>(first + i)] = rank;
        else if (column.role == ColumnRole::input)
          dataset_.inputs(first + i, offsets_[j] + rank) = column.categorical ? 1.0 : value;
        else
          values_of(column.role)[first + i] =
              column.categorical ? static_cast<double>(rank) : value;
      }
    }
    first += count;
    std::vector<double>().swap(piece);
  }
}

std::vector<std::string> messages_of(const Dataset& data) {
  std::vector<std::string> out;
  const CsvInfo& csv = data.csv;
  if (csv.generated_header)
    out.push_back(
        "the file has no header; its columns are called x1, x2, ... and, the last one, y");
  if (csv.separator != ',')
    out.push_back(fmt::format("fields are separated by {}",
                              csv.separator == '\t' ? "tabs" : shown({&csv.separator, 1})));
  if (csv.comment_lines > 0)
    out.push_back(
        fmt::format("skipped {} (starting with #)", plural(csv.comment_lines, "comment line")));
  if (data.rows_missing_target > 0)
    out.push_back(
        fmt::format("left out {} with a missing target", plural(data.rows_missing_target, "row")));
  if (data.rows_dropped_missing > 0)
    out.push_back(
        fmt::format("left out {} with a missing input", plural(data.rows_dropped_missing, "row")));
  if (!data.schema.dropped_constant.empty())
    out.push_back(
        fmt::format("left out {} with one value only: {}",
                    plural(static_cast<Index>(data.schema.dropped_constant.size()), "column"),
                    shown_list(data.schema.dropped_constant)));
  if (!data.schema.target_levels.empty())
    out.push_back(fmt::format("the target's categories, in this order: {}",
                              shown_list(data.schema.target_levels)));
  if (data.schema.log_target)
    out.push_back("the logarithm of the target is learned; predictions are of the target itself");
  if (data.duplicate_inputs > 0)
    out.push_back(fmt::format("{} of {} rows have the inputs of an earlier row",
                              data.duplicate_inputs, data.size()));
  return out;
}

/// What is known only of the whole: duplicates, scaling, fingerprint, messages.
void finish(Dataset& data, bool standardize) {
  const auto first = first_equal_rows(data.inputs);
  for (Index i = 0; i < data.size(); ++i)
    data.duplicate_inputs += first[static_cast<std::size_t>(i)] != i ? 1 : 0;
  data.scaling = standardize ? fit_scaling(data.inputs, data.learned_target())
                             : Scaling::identity(data.dimension());
  const Index sizes[2] = {data.size(), data.dimension()};
  std::uint64_t mark = fingerprint(sizes, sizeof sizes);
  mark = fingerprint(data.inputs.data(),
                     static_cast<std::size_t>(data.inputs.size()) * sizeof(double), mark);
  for (const Vector* column : {&data.target, &data.noise.variance, &data.noise.count})
    mark = fingerprint(column->data(), static_cast<std::size_t>(column->size()) * sizeof(double),
                       mark);
  if (data.schema.log_target) mark = fingerprint("log", 3, mark);
  data.fingerprint = mark;
  data.messages = messages_of(data);
}

bool usable(const double* values, Index count) {
  return std::all_of(values, values + count, [](double v) { return std::abs(v) <= largest_value; });
}

/// Moves the varying columns to the front and cuts the others off; names them in the schema.
void drop_constant_columns(Dataset& data, const std::vector<std::string>& names) {
  Index kept = 0;
  for (Index j = 0; j < data.inputs.cols(); ++j) {
    const auto column = data.inputs.col(j);
    const auto& name = names[static_cast<std::size_t>(j)];
    if (!usable(column.data(), column.size()))
      throw DataError(fmt::format("input {} holds a value that is not finite or beyond {}",
                                  shown(name), largest_value));
    if (column.minCoeff() == column.maxCoeff()) {
      data.schema.dropped_constant.push_back(name);
      continue;
    }
    if (kept != j) data.inputs.col(kept) = column;
    data.schema.inputs.push_back({name, false, {}});
    ++kept;
  }
  if (kept == 0) throw DataError("all rows have the same inputs; there is nothing to learn from");
  if (kept < data.inputs.cols()) data.inputs.conservativeResize(Eigen::NoChange, kept);
}

}  // namespace

Vector Dataset::learned_target() const {
  if (!schema.log_target) return target;
  for (Index i = 0; i < target.size(); ++i)
    if (const auto why = log_fault(target[i]); !why.empty())
      throw DataError(fmt::format("row {} of those used: {}", i + 1, why));
  return target.array().log();
}

Dataset read_dataset(CsvReader& reader, const DataOptions& options) {
  validate(options);
  Dataset data = Loader(reader, options).load();
  finish(data, options.standardize);
  return data;
}

Schema find_schema(CsvReader& reader, const DataOptions& options) {
  validate(options);
  return Loader(reader, options).schema();
}

Dataset read_dataset(const std::string& path, const DataOptions& options) {
  return CsvRows(path, options).dataset();
}

Dataset make_dataset(Matrix inputs, Vector target, std::vector<std::string> names,
                     bool standardize) {
  if (inputs.rows() != target.size())
    throw DimensionMismatch("make_dataset: rows of the inputs", inputs.rows(), "targets",
                            target.size());
  if (names.empty())
    for (Index j = 1; j <= inputs.cols(); ++j) names.push_back(fmt::format("x{}", j));
  if (static_cast<Index>(names.size()) != inputs.cols())
    throw DimensionMismatch("make_dataset: names", static_cast<Index>(names.size()),
                            "columns of the inputs", inputs.cols());
  const std::unordered_set<std::string> distinct(names.begin(), names.end());
  if (distinct.size() != names.size() || distinct.count("") > 0 || distinct.count("y") > 0)
    throw InvalidArgument("make_dataset: names must differ, and be neither empty nor 'y'");
  if (target.size() < 2)
    throw DataError(fmt::format("there are {} rows; at least 2 are needed", target.size()));
  if (!usable(target.data(), target.size()))
    throw DataError(
        fmt::format("the target holds a value that is not finite or beyond {}", largest_value));
  if (target.minCoeff() == target.maxCoeff())
    throw DataError(fmt::format(
        "the target has the same value {} in all rows; there is nothing to learn", target[0]));
  Dataset data;
  data.inputs = std::move(inputs);
  data.target = std::move(target);
  data.rows_read = data.size();
  for (Index i = 1; i <= data.size(); ++i) data.row_numbers.push_back(i);
  data.schema.target.assign(1, 'y');
  drop_constant_columns(data, names);
  finish(data, standardize);
  return data;
}

Dataset take_rows(const Dataset& all, std::span<const Index> rows, bool standardize) {
  if (rows.empty()) throw InvalidArgument("take_rows: no rows were chosen");
  Dataset part;
  part.inputs = take_rows(ConstMatrixView(all.inputs), rows);
  part.target = take_rows(ConstVectorView(all.target), rows);
  part.noise = take_rows(all.noise, rows);
  for (const Index row : rows) {
    const auto from = static_cast<std::size_t>(row);
    if (from < all.row_numbers.size()) part.row_numbers.push_back(all.row_numbers[from]);
    if (from < all.fold.size()) part.fold.push_back(all.fold[from]);
  }
  part.fold_names = all.fold_names;
  part.schema = all.schema;
  part.rows_read = all.rows_read;
  part.rows_missing_target = all.rows_missing_target;
  part.rows_dropped_missing = all.rows_dropped_missing;
  part.csv = all.csv;
  finish(part, standardize);
  return part;
}

}  // namespace mercer::data
