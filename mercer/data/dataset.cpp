#include "mercer/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "mercer/core/checksum.hpp"
#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/column_choice.hpp"
#include "mercer/data/equal_rows.hpp"
#include "mercer/data/row_source.hpp"
#include "mercer/data/split.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

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
        fmt::format("skipped {} above the header", plural(csv.comment_lines, "comment line")));
  if (data.rows_missing_target > 0)
    out.push_back(
        fmt::format("left out {} with a missing target", plural(data.rows_missing_target, "row")));
  if (data.rows_dropped_missing > 0)
    out.push_back(
        fmt::format("left out {} with a missing input", plural(data.rows_dropped_missing, "row")));
  if (data.cells_filled > 0)
    out.push_back(fmt::format("filled {}: {}", plural(data.cells_filled, "missing cell"),
                              fmt::join(data.fills, ", ")));
  for (const auto& name : data.row_counters)
    out.push_back(fmt::format(
        "column {} counts the rows; leave it out with `exclude={}`, or name it with `id={}`",
        shown(name), name, name));
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
                              count_text(data.duplicate_inputs), count_text(data.size())));
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

void check(const DataOptions& options) {
  validate(options);
  if (options.impute && options.drop_missing)
    throw InvalidArgument(
        "`impute` fills missing cells and `drop_missing` leaves their rows out; give one of them");
}

}  // namespace

CsvOptions csv_options(const DataOptions& options) {
  CsvOptions out;
  if (options.delimiter) out.separator = separator_of(*options.delimiter);
  out.memory = options.memory;
  return out;
}

Vector Dataset::learned_target() const {
  if (!schema.log_target) return target;
  for (Index i = 0; i < target.size(); ++i)
    if (const auto why = log_fault(target[i]); !why.empty())
      throw DataError(fmt::format("row {} of those used: {}", i + 1, why));
  return target.array().log();
}

Dataset read_dataset(CsvReader& reader, const DataOptions& options) {
  check(options);
  Dataset data = load_rows(reader, options);
  finish(data, options.standardize);
  return data;
}

StreamedData survey(const std::string& path, const DataOptions& options, const SurveyOptions& how,
                    const ProgressCallback& progress) {
  check(options);
  if (options.text_target)
    throw InvalidArgument(
        "rows that are read in passes have a target of numbers: leave `text_target` out");
  if (options.impute)
    throw InvalidArgument(
        "`impute` fills cells with medians and most frequent texts, which need all rows at once; "
        "rows that are read in passes cannot have it: leave such rows out with `drop_missing`, or "
        "fill the cells in the file");
  const Timer timer;
  auto source = std::make_shared<CsvRows>(path, options);
  auto out = source->survey(how, progress);
  out.sample.messages = messages_of(out.sample);
  out.source = std::move(source);
  out.seconds = timer.seconds();
  return out;
}

Schema find_schema(CsvReader& reader, const DataOptions& options) {
  check(options);
  return load_schema(reader, options);
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
  part.cells_filled = all.cells_filled;
  part.fills = all.fills;
  part.row_counters = all.row_counters;
  part.csv = all.csv;
  finish(part, standardize);
  return part;
}

}  // namespace mercer::data
