// Which columns of a file are read, and as what.
#pragma once

#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "mercer/data/dataset.hpp"

namespace mercer::data {

/// A column being read.
struct Column {
  std::string name;
  Index place = 0;  // in the file
  ColumnRole role = ColumnRole::input;
  bool categorical = false;
  bool undecided = false;                        // read as text; numbers if there are only those
  Index slot = 0;                                // in a CsvBlock
  std::unordered_map<std::string, Index> codes;  // of categories, in order of appearance
  std::vector<std::string> levels;               // the same, by code; sorted at the end
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool constant() const { return categorical ? levels.size() < 2 : !(low < high); }
};

/// Columns to read, target first, from what the options name. Throws DataError, InvalidArgument.
std::vector<Column> choose_columns(CsvReader& reader, const DataOptions& options);
/// Sets the slots of the columns.
CsvSelection selection_of(std::vector<Column>& columns, const std::string& target_advice);

}  // namespace mercer::data
