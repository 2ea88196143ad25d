// A data set to learn from: inputs and target read from a CSV file, checked, categories coded.
// The whole file is loaded; memory on the way is about twice that of the final matrix.
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/noise_columns.hpp"
#include "mercer/data/scaling.hpp"
#include "mercer/data/schema.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct DataOptions {
  std::optional<std::string> target;        // default: the last column
  std::vector<std::string> inputs;          // default: all others
  std::vector<std::string> exclude;         // no inputs
  std::optional<std::string> id;            // names the rows: no input, kept in the schema
  std::optional<std::string> noise_column;  // known noise variances, in squared target units
  std::optional<std::string> count_column;  // observations that each row is the mean of
  std::optional<std::string> fold_column;   // the fold of each row, any values
  std::vector<std::string> dates;           // inputs to read as days since 1970-01-01
  std::vector<std::string> categorical;  // inputs to code one-hot; or the target, coded 0, 1, ...
  bool text_target = false;  // a target that begins with text holds categories, without being named
  bool text_anywhere = false;  // text_target: also one with text further down
  std::string target_advice;   // what to do about text in a target of numbers; "": `categorical`
  bool log_target = false;     // learn the logarithm of the target, which must be positive
  bool drop_missing = false;   // leave rows with a missing input out instead of refusing
  std::optional<std::string> impute;     // "median", "level": what a missing input becomes
  bool standardize = true;               // Dataset::scaling; false: the identity
  Index max_levels = 1000;               // of a categorical column
  std::optional<std::string> delimiter;  // character between fields, or a word for it; unset: found
  std::optional<std::uint64_t> memory;   // bytes to stay inside while reading
};
template <class Visitor>
void visit_fields(DataOptions& o, Visitor&& field) {
  field({"target", "NAME", "column to learn", "the last one"}, o.target, Any{});
  field({"inputs", "A,B,C",
         "columns to learn from; here and below a name with a comma stands in quotes: \"a,b\",c",
         "all others"},
        o.inputs, Any{});
  field({"exclude", "A,B", "columns to leave out of the inputs", "none"}, o.exclude, Any{});
  field({"id", "NAME", "column that names the rows: not an input, and predict copies it", "none"},
        o.id, Any{});
  field({"categorical", "A,B", "text columns to code one-hot; may be repeated", "none"},
        o.categorical, Any{});
  field({"dates", "A,B",
         "columns of dates such as 2010-05-31 or 2010-05-31T12:30, read as days since 1970-01-01",
         "none"},
        o.dates, Any{});
  field({"log_target", "",
         "learn the logarithm of the target, which must be positive; predictions are of the target "
         "itself"},
        o.log_target, Any{});
  field({"drop_missing", "", "leave out rows with a missing input instead of refusing"},
        o.drop_missing, Any{});
  field({"impute", "HOW",
         "fill missing inputs: median takes the median of a number and the most frequent text; "
         "level the median and an input NAME=missing beside it, and for texts a level 'missing'",
         "they are refused"},
        o.impute, OneOf{{"median", "level"}});
  field({"delimiter", "C", "character between fields, or tab, comma, semicolon, pipe, space",
         "found in the first rows"},
        o.delimiter, Any{});
  field({"standardize", "", "scale inputs and target to mean 0 and variance 1"}, o.standardize,
        Any{});
  field({"noise_column", "NAME",
         "column of known noise variances, in squared units of the target; the learned one is "
         "added. Not an input",
         "none"},
        o.noise_column, Any{});
  field({"count_column", "NAME",
         "each row stands for so many observations (a weight): of numbers it is their mean, of "
         "classes and counts each was the same. Not an input",
         "none"},
        o.count_column, Any{});
  field("fold_column", o.fold_column, Any{});
  field("text_target", o.text_target, Any{});
  field("text_anywhere", o.text_anywhere, Any{});
  field("target_advice", o.target_advice, Any{});
  field("max_levels", o.max_levels, Positive{});
  field({"memory", "", "", "", Affects::plan}, o.memory, Bytes{});
}

/// How the file is read: its separator, and the longest row that the memory allows.
CsvOptions csv_options(const DataOptions& options);

struct Dataset {
  Matrix inputs;  // N x d, encoded, in raw units
  Vector target;  // N, raw units
  NoiseColumns noise;
  Schema schema;
  Scaling scaling;

  std::vector<Index> row_numbers;       // of each row among those read, from 1
  std::vector<Index> fold;              // of each row, a place in fold_names; empty: no fold column
  std::vector<std::string> fold_names;  // the values of the fold column, sorted

  Index rows_read = 0;                    // N + the rows left out
  Index rows_missing_target = 0;          // left out
  Index rows_dropped_missing = 0;         // left out because of a missing input
  Index cells_filled = 0;                 // missing inputs that `impute` filled
  std::vector<std::string> fills;         // and with what, by column
  std::vector<std::string> row_counters;  // inputs that number the rows
  Index duplicate_inputs = 0;             // rows whose inputs equal those of an earlier row
  CsvInfo csv;                            // comment lines, generated header, separator
  std::uint64_t fingerprint = 0;          // of the values, to recognise the same data again
  std::vector<std::string> messages;      // what the user should be told, a sentence each

  /// The target, or its logarithm where the schema says so (also when that was set by hand, for
  /// arrays). Throws DataError when one is not positive.
  Vector learned_target() const;
  Index size() const { return target.size(); }
  Index dimension() const { return inputs.cols(); }
};

/// Reads `path` ("-": standard input). Throws IoError if it cannot be read, DataError naming line
/// and column if it cannot be used, InvalidArgument if the options contradict each other.
Dataset read_dataset(const std::string& path, const DataOptions& options = {});
Dataset read_dataset(CsvReader& reader, const DataOptions& options = {});
/// The columns that read_dataset would find, in one pass that keeps no row.
Schema find_schema(CsvReader& reader, const DataOptions& options = {});

/// The same checks on arrays: N x d inputs, N targets; names default to x1 .. xd and y.
Dataset make_dataset(Matrix inputs, Vector target, std::vector<std::string> names = {},
                     bool standardize = true);

/// These rows of a data set, in this order: duplicates, scaling, fingerprint and messages are those
/// of the part; what was read and left out is still counted over the whole file.
Dataset take_rows(const Dataset& all, std::span<const Index> rows, bool standardize = true);

}  // namespace mercer::data
MERCER_API_END
