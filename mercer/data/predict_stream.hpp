// Rows for an existing schema, block by block: columns are found by name in any order, others are
// ignored. Memory is one block, whatever the size of the file.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/types.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/row_block.hpp"
#include "mercer/data/schema.hpp"

MERCER_API_BEGIN
namespace mercer::data {

enum class TargetUse { ignored, if_present, required };

struct PredictOptions {
  TargetUse target = TargetUse::ignored;
  bool drop_missing = false;  // leave rows with a missing input out instead of refusing
  /// Further columns: with drop_missing, rows without a value there are left out, too.
  std::vector<std::string> also_complete = {};
  std::vector<std::string> carry = {};  // columns whose text goes into RowBlock::carried
  bool carry_id = false;                // the id column of the schema, where the file has it
  bool carry_all = false;               // and then all others, in the order of the file
  CsvOptions csv = {};                  // separator, memory
};

class PredictStream {
 public:
  PredictStream(const std::string& path, Schema schema, PredictOptions options = {});
  PredictStream(CsvReader reader, Schema schema, PredictOptions options = {});

  /// Reads up to max_rows rows; false at the end. A row with a missing target is left out (and
  /// counted) when targets are read; a missing input or an unknown level is a DataError.
  bool next(RowBlock& block, Index max_rows);

  bool has_target() const { return has_target_; }
  /// Whether the file has all of the noise and count columns that the schema names.
  bool has_noise() const {
    return (noise_slot_ >= 0 || schema_.noise_column.empty()) &&
           (count_slot_ >= 0 || schema_.count_column.empty());
  }
  /// Names of RowBlock::carried.
  const std::vector<std::string>& carried_names() const { return carried_names_; }
  const CsvInfo& info() const { return reader_.info(); }
  Index rows_missing_target() const { return rows_missing_target_; }
  Index rows_dropped_missing() const { return rows_dropped_missing_; }
  /// Missing inputs that were read as the schema says.
  Index cells_filled() const { return cells_filled_; }

 private:
  void choose_carried(const std::vector<std::string>& names, CsvSelection& selection);
  bool keep_row(const CsvBlock& raw, Index row);
  void encode(const CsvBlock& raw, RowBlock& block);
  void encode_input(const CsvBlock& raw, Index row, std::size_t j, VectorView out);
  bool missing(const CsvBlock& raw, Index row, bool text, Index slot) const;
  double number(const CsvBlock& raw, Index row, Index slot, const std::string& column,
                ColumnRole role = ColumnRole::input) const;
  Index level(const CsvBlock& raw, Index row, Index slot, const std::string& column,
              const std::vector<std::string>& levels) const;

  CsvReader reader_;
  Schema schema_;
  PredictOptions options_;
  bool has_target_ = false;
  std::vector<Index> slots_;  // per input: among the numeric or the text columns of a CsvBlock
  std::vector<Index> complete_slots_;  // of also_complete, among the text columns
  Index target_slot_ = 0;
  Index noise_slot_ = -1, count_slot_ = -1;  // -1: not in the file
  Index numeric_columns_ = 0;
  std::vector<std::string> carried_names_;
  CsvBlock raw_;
  std::vector<Index> kept_;  // rows of raw_
  Vector encoded_;           // one raw column of a row
  Index rows_missing_target_ = 0;
  Index rows_dropped_missing_ = 0;
  Index cells_filled_ = 0;
};

}  // namespace mercer::data
MERCER_API_END
