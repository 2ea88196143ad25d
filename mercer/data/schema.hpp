// What the columns of a data set mean: which raw columns become inputs, how categories are coded,
// and what is predicted. Learnt from the training file, kept in the model file, and then used to
// read other files by column name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

/// Larger values are refused: differences of two of them overflow.
inline constexpr double largest_value = 1e300;

/// A raw column. Numeric: one encoded input. Categorical: one 0/1 input per level (one-hot). A date
/// is a number: days since 1970-01-01.
struct InputColumn {
  std::string name;
  bool categorical = false;
  std::vector<std::string> levels = {};  // sorted, of categorical columns
  bool date = false;
  std::optional<double> fill = {};  // what a missing number is read as; unset: it is refused
  std::string fill_level = {};      // the same of a categorical column; "": it is refused
  bool missing_input = false;       // a number: a second input, 1 where the cell was missing

  Index width() const {
    return categorical ? static_cast<Index>(levels.size()) : missing_input ? 2 : 1;
  }
  bool fills() const { return categorical ? !fill_level.empty() : fill.has_value(); }
  bool operator==(const InputColumn&) const = default;
};

struct Schema {
  std::vector<InputColumn> inputs;
  std::string target;
  std::vector<std::string> target_levels;  // sorted; level j is coded as j; empty: numeric target
  std::vector<std::string> dropped_constant;  // columns left out because they had one value only
  std::string noise_column, count_column;     // see noise_columns.hpp; empty: there is none
  std::string id_column;          // names the rows, and is no input; empty: there is none
  bool generated_header = false;  // the file had no header; names are x1 .., y

  /// The logarithm of the target is learned, so that predictions of y are log-normal.
  bool log_target = false;

  /// What is learned, for units: "price", or "log price".
  std::string learned_name() const { return log_target ? "log " + target : target; }
  /// Encoded inputs: d.
  Index dimension() const;
  /// One name per encoded input: "age", "colour=red", "age=missing".
  std::vector<std::string> encoded_names() const;
  bool operator==(const Schema&) const = default;
};

/// The place of `text` among the sorted levels, -1 if it is not one of them.
Index level_index(const std::vector<std::string>& levels, std::string_view text);

}  // namespace mercer::data
MERCER_API_END
