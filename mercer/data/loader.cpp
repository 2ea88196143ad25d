// The rows of a table on their way into a data set: texts become codes, dates days, missing cells
// what they are filled with. Memory on the way is about twice that of the final matrix, and is kept
// inside a budget where there is one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/column_choice.hpp"
#include "mercer/data/row_sample.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

// Bytes that reading may always take beside the program.
constexpr double least_room = 16.0 * 1048576;
// Rows from which a column that counts them is noted.
constexpr Index least_counted = 10;

/// Rows on the way in: pieces of row-major values (codes for categories), target first.
class Loader {
 public:
  Loader(CsvReader& reader, const DataOptions& options)
      : reader_(reader), options_(options), columns_(choose_columns(reader, options)) {
    reader_.select(selection_of(columns_, options.target_advice));
  }

  Dataset load() {
    read_rows(true);
    settle_schema();
    assemble();
    return std::move(dataset_);
  }

  StreamedData load_sample(const SurveyOptions& how,
                           const std::function<void(const CsvInfo&)>& on_block) {
    sample_.emplace(how.reservoir, how.seed, columns_.size(), options_.log_target);
    on_block_ = on_block;
    read_rows(false);
    settle_schema();
    StreamedData out;
    out.rows = rows_;
    describe_all(out);
    pieces_.push_back(sample_->take(dataset_.row_numbers));
    rows_ = static_cast<Index>(dataset_.row_numbers.size());
    assemble();
    out.sample = std::move(dataset_);
    return out;
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
    while (next(block, piece_rows)) {
      take_rows(block);
      if (sample_) add_to_sample();
      if (!keep && !options_.impute) {
        pieces_.clear();
        dataset_.row_numbers.clear();
      }
      check_memory();
      if (on_block_) on_block_(reader_.info());
    }
    dataset_.csv = reader_.info();
    dataset_.rows_read = reader_.info().rows;
    settle_target();
    settle_fills();
    check_columns();
  }
  bool next(CsvBlock& block, Index max_rows) {
    try {
      return reader_.next(block, max_rows);
    } catch (const TextInNumbers& found) {
      const auto column = std::find_if(columns_.begin(), columns_.end(),
                                       [&](const Column& c) { return c.place == found.column; });
      if (column == columns_.end() || column->role != ColumnRole::input) throw;
      refuse_text(reader_, columns_, options_, found);
    }
  }
  void check_memory() const;
  void add_to_sample();
  void describe_all(StreamedData& out);
  void take_rows(const CsvBlock& block);
  bool take_row(const CsvBlock& block, Index row, std::vector<double>& piece);
  double value_of(Column& column, const CsvBlock& block, std::size_t row);
  double code_of(Column& column, const std::string& text, Index line);
  void settle_target();
  void settle_fills();
  void fill_numbers(Column& column, std::size_t place);
  void fill_levels(Column& column, std::size_t place);
  void check_columns();
  void settle_schema();
  void assemble();
  void place_value(const Column& column, std::size_t j, double value, Index row);
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
  std::optional<RowSample> sample_;  // none: all rows are kept, or none is
  std::function<void(const CsvInfo&)> on_block_;
  Index rows_ = 0;
  Index first_row_ = 0;                    // of the block, among those read
  std::vector<std::vector<Index>> ranks_;  // per column: of the codes, where it holds categories
  std::vector<Index> offsets_;             // per column: first encoded one; -1: dropped
  Dataset dataset_;
};

void Loader::take_rows(const CsvBlock& block) {
  std::vector<double> piece;
  piece.reserve(static_cast<std::size_t>(block.rows) * columns_.size());
  first_row_ = reader_.info().rows - block.rows;
  for (Index row = 0; row < block.rows; ++row)
    if (take_row(block, row, piece)) ++rows_;
  if (!piece.empty()) pieces_.push_back(std::move(piece));
}

/// Rows in pieces or in the final matrix, the table that finds duplicates, and the levels.
void Loader::check_memory() const {
  if (!options_.memory) return;
  Index inputs = 0;
  double levels = 0;
  for (const auto& column : columns_) {
    if (column.role == ColumnRole::input) inputs += column.width();
    for (const auto& level : column.levels) levels += 2.0 * static_cast<double>(level.size() + 100);
  }
  const auto width = std::max(inputs + 1, static_cast<Index>(columns_.size()));
  const double of_row = 8.0 * static_cast<double>(width + 7);
  // What is small is read in any case: the plan says what would do.
  const double room = std::max(
      static_cast<double>(*options_.memory) - static_cast<double>(program_bytes), least_room);
  const Index kept = sample_ ? sample_->kept() : rows_;
  if (levels + of_row * static_cast<double>(kept) <= room) return;
  if (sample_)
    throw DoesNotFit(fmt::format(
        "{}: a sample of {} rows with {} already fills the memory of {}; give a smaller "
        "`reservoir`, more `memory`, or leave columns out with `exclude`",
        reader_.name(), kept, plural(inputs, "input"),
        format_bytes(static_cast<double>(*options_.memory))));
  const double fit = std::max(0.0, (room - levels) / of_row);
  throw DoesNotFit(fmt::format(
      "{}: the first {} rows with {} already fill the memory of {}: about {:.0f} such rows fit; "
      "give more `memory`, take a random part of the rows, or leave columns out with `exclude`",
      reader_.name(), rows_, plural(inputs, "input"),
      format_bytes(static_cast<double>(*options_.memory)), fit));
}

void Loader::add_to_sample() {
  std::vector<bool> category;
  category.reserve(columns_.size());
  for (const auto& column : columns_) category.push_back(column.categorical);
  if (!pieces_.empty()) sample_->add(pieces_.back(), dataset_.row_numbers, category);
}

void Loader::describe_all(StreamedData& out) {
  const Index d = dataset_.schema.dimension();
  const EncodedColumns encoded{columns_, offsets_, ranks_, d};
  out.range = encoded_range(*sample_, encoded);
  out.moments = encoded_scaling(*sample_, encoded);
  dataset_.scaling = options_.standardize ? out.moments : Scaling::identity(d);
  dataset_.fingerprint = fingerprint_of(*sample_, encoded);
  if (options_.log_target) dataset_.fingerprint = fingerprint("log", 3, dataset_.fingerprint);
}

double Loader::value_of(Column& column, const CsvBlock& block, std::size_t row) {
  const auto slot = static_cast<std::size_t>(column.slot);
  if (!column.as_text()) {
    const std::size_t width = block.values.size() / static_cast<std::size_t>(block.rows);
    return block.values[row * width + slot];
  }
  const auto& text = block.text[slot][row];
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (column.categorical) return code_of(column, text, block.lines[row]);
  const auto days = parse_date(text);
  if (!days)
    throw DataError(
        fmt::format("{}: {}", reader_.place(block.lines[row], column.name), date_advice(text)));
  return *days;
}

/// Appends a row to `piece`, unless something is missing in it.
bool Loader::take_row(const CsvBlock& block, Index row, std::vector<double>& piece) {
  const auto r = static_cast<std::size_t>(row);
  const auto missing = [&](const Column& c) {
    const auto slot = static_cast<std::size_t>(c.slot);
    return c.as_text()
               ? block.text[slot][r].empty()
               : std::isnan(
                     block.values[r * (block.values.size() / static_cast<std::size_t>(block.rows)) +
                                  slot]);
  };
  bool missing_input = false;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    if (is_noise(column.role) || !missing(column)) continue;
    if (j == 0) {
      ++dataset_.rows_missing_target;
      return false;
    }
    if (column.role == ColumnRole::fold)
      throw DataError(fmt::format("{}: the value is missing; every row needs the name of its fold",
                                  reader_.place(block.lines[r], column.name)));
    if (!options_.drop_missing && !options_.impute)
      throw DataError(fmt::format(
          "{}: the value is missing; {}leave such rows out with `drop_missing`, or the column with "
          "`exclude`",
          reader_.place(block.lines[r], column.name),
          sample_ ? "" : "fill such cells with `impute=median` or `impute=level`, "));
    missing_input = true;
  }
  if (missing_input && options_.drop_missing) {
    ++dataset_.rows_dropped_missing;
    return false;
  }
  for (auto& column : columns_) {
    const double value = value_of(column, block, r);
    if (const auto why = fault(column.role, value); !why.empty())
      throw DataError(fmt::format("{}: {}", reader_.place(block.lines[r], column.name), why));
    if (std::abs(value) > largest_value)
      throw DataError(fmt::format("{}: {} is too large to work with; use other units",
                                  reader_.place(block.lines[r], column.name), value));
    if (options_.log_target && column.role == ColumnRole::target && !column.categorical)
      if (const auto why = log_fault(value); !why.empty())
        throw DataError(fmt::format("{}: {}", reader_.place(block.lines[r], column.name), why));
    if (std::isnan(value)) ++column.missing;
    if (rows_ == 0) column.first = value - static_cast<double>(first_row_ + row);
    column.counts_rows = column.counts_rows && !column.as_text() &&
                         value == column.first + static_cast<double>(first_row_ + row);
    column.low = std::min(column.low, std::isnan(value) ? column.low : value);
    column.high = std::max(column.high, std::isnan(value) ? column.high : value);
    piece.push_back(value);
  }
  dataset_.row_numbers.push_back(first_row_ + row + 1);
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
                                            : "leave it out with `exclude`"));
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

/// What missing cells become: with `impute=median` the median and the most frequent level, with
/// `impute=level` the median with an input beside it, and a level of their own. A column without
/// missing cells is not changed, but knows what to do when one comes.
void Loader::settle_fills() {
  if (!options_.impute || rows_ == 0) return;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    Column& column = columns_[j];
    if (column.role != ColumnRole::input || column.missing == rows_) continue;
    if (column.categorical)
      fill_levels(column, j);
    else
      fill_numbers(column, j);
    if (column.missing == 0) continue;
    dataset_.cells_filled += column.missing;
    dataset_.fills.push_back(fmt::format(
        "{} with {} ({}){}", shown(column.name),
        column.categorical ? shown(column.fill_level) : fmt::format("{}", *column.fill),
        plural(column.missing, "cell"),
        column.missing_input ? " and the input " + shown(column.name + "=missing") : ""));
  }
}

void Loader::fill_numbers(Column& column, std::size_t place) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows_ - column.missing));
  for (const auto& piece : pieces_)
    for (std::size_t at = place; at < piece.size(); at += columns_.size())
      if (!std::isnan(piece[at])) values.push_back(piece[at]);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  const double lower = values.size() % 2 == 1 ? upper : *std::max_element(values.begin(), middle);
  column.fill = lower + (upper - lower) / 2;
  column.missing_input = options_.impute == "level" && column.missing > 0;
}

void Loader::fill_levels(Column& column, std::size_t place) {
  if (options_.impute == "level" && column.missing > 0) {
    column.fill_level = "missing";
  } else {
    std::vector<Index> counts(column.levels.size(), 0);
    for (const auto& piece : pieces_)
      for (std::size_t at = place; at < piece.size(); at += columns_.size())
        if (!std::isnan(piece[at])) ++counts[static_cast<std::size_t>(piece[at])];
    std::size_t best = 0;
    for (std::size_t code = 1; code < counts.size(); ++code)
      if (counts[code] > counts[best] ||
          (counts[code] == counts[best] && column.levels[code] < column.levels[best]))
        best = code;
    column.fill_level = column.levels[best];
  }
  const auto [found, fresh] =
      column.codes.try_emplace(column.fill_level, static_cast<Index>(column.levels.size()));
  if (fresh) column.levels.push_back(column.fill_level);
  for (auto& piece : pieces_)
    for (std::size_t at = place; at < piece.size(); at += columns_.size())
      if (std::isnan(piece[at])) piece[at] = static_cast<double>(found->second);
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
    if (column.counts_rows && rows_ >= least_counted && reads_like_id(column.name))
      dataset_.row_counters.push_back(column.name);
    schema.inputs.push_back({column.name, column.categorical, column.levels, column.date,
                             column.fill, column.fill_level, column.missing_input});
    offsets_[j] = dimension;
    dimension += schema.inputs.back().width();
  }
  schema.target_levels = columns_[0].levels;
}

void Loader::place_value(const Column& column, std::size_t j, double value, Index row) {
  const Index rank = column.categorical ? ranks_[j][static_cast<std::size_t>(value)] : 0;
  if (column.role == ColumnRole::fold) {
    dataset_.fold[static_cast<std::size_t>(row)] = rank;
    return;
  }
  if (column.role != ColumnRole::input) {
    values_of(column.role)[row] = column.categorical ? static_cast<double>(rank) : value;
    return;
  }
  const bool filled = std::isnan(value);
  dataset_.inputs(row, offsets_[j] + rank) = column.categorical ? 1.0
                                             : filled           ? *column.fill
                                                                : value;
  if (filled && column.missing_input) dataset_.inputs(row, offsets_[j] + 1) = 1;
}

/// Turns the pieces into the final matrix, freeing each as it goes.
void Loader::assemble() {
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
      for (Index i = 0; i < count; ++i)
        place_value(column, j, piece[static_cast<std::size_t>(i) * width + j], first + i);
    }
    first += count;
    std::vector<double>().swap(piece);
  }
}

}  // namespace

Dataset load_rows(CsvReader& reader, const DataOptions& options) {
  return Loader(reader, options).load();
}

StreamedData load_sample(CsvReader& reader, const DataOptions& options, const SurveyOptions& how,
                         const std::function<void(const CsvInfo&)>& on_block) {
  return Loader(reader, options).load_sample(how, on_block);
}

Schema load_schema(CsvReader& reader, const DataOptions& options) {
  return Loader(reader, options).schema();
}

}  // namespace mercer::data
