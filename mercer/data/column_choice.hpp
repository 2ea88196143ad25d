// Which columns of a file are read, and as what; and the reading of them.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "mercer/data/streamed_data.hpp"

namespace mercer::data {

/// A column being read.
struct Column {
  std::string name;
  Index place = 0;  // in the file
  ColumnRole role = ColumnRole::input;
  bool categorical = false;
  bool date = false;
  bool undecided = false;                        // read as text; numbers if there are only those
  Index slot = 0;                                // in a CsvBlock
  std::unordered_map<std::string, Index> codes;  // of categories, in order of appearance
  std::vector<std::string> levels;               // the same, by code; sorted at the end
  Index missing = 0;                             // cells to be filled
  std::optional<double> fill = {};               // with this number
  std::string fill_level = {};                   // or with this level
  bool missing_input = false;                    // a second input says where
  bool counts_rows = true;                       // 1, 2, 3 ... from its first value on
  double first = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool as_text() const { return categorical || date; }
  bool constant() const {
    return categorical ? levels.size() < 2 : !(low < high) && !missing_input;
  }
  /// Encoded inputs that it becomes.
  Index width() const {
    return categorical ? static_cast<Index>(levels.size()) : missing_input ? 2 : 1;
  }
};

/// Columns to read, target first, from what the options name. Throws DataError, InvalidArgument.
std::vector<Column> choose_columns(CsvReader& reader, const DataOptions& options);
/// Sets the slots of the columns.
CsvSelection selection_of(std::vector<Column>& columns, const std::string& target_advice);

/// Throws a DataError that names every input with text in it, what it looks like, and the options
/// to give. Reads on from the row that `found` is about: the rows before held numbers.
[[noreturn]] void refuse_text(CsvReader& reader, const std::vector<Column>& columns,
                              const DataOptions& options, const TextInNumbers& found);

/// The rows of the chosen columns: a data set but for what is known only of the whole.
Dataset load_rows(CsvReader& reader, const DataOptions& options);
/// A sample of them, with what is known of all; no source.
StreamedData load_sample(CsvReader& reader, const DataOptions& options, const SurveyOptions& how,
                         const std::function<void(const CsvInfo&)>& on_block);
/// Its schema only; no row is kept, unless medians are asked for.
Schema load_schema(CsvReader& reader, const DataOptions& options);

}  // namespace mercer::data
