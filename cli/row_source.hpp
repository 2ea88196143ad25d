// DATA of predict and evaluate: rows for a model's columns, block by block, with progress.
#pragma once

#include <string>

#include "cli/console.hpp"
#include "mercer/data/row_source.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::cli {

/// The columns that predictions need. Only with Gaussian noise is a count part of them: it says how
/// noisy the mean of so many observations is. Otherwise a prediction is of one observation.
data::Schema prediction_schema(data::Schema schema, bool gaussian);

class PredictionRows {
 public:
  /// An unreadable file is exit code 3.
  PredictionRows(const std::string& path, const data::Schema& schema, data::PredictOptions options);

  /// The next rows; false at the end.
  bool next(data::RowBlock& block);
  /// All rows in one block.
  data::RowBlock all();
  Index rows() const { return rows_; }
  /// "new.csv: line 3", of a row of a block.
  std::string place(const data::RowBlock& block, Index row) const;

  /// Predictions for a block of them; a row that overflows is named by its line (DataError).
  models::Predictions predict(const models::Predictor& predictor, const data::RowBlock& block,
                              models::RowSample& sample, const ProgressCallback& progress) const;

  /// Progress over the whole file, whatever a single block reports.
  ProgressCallback progress(const Console& console) const;
  /// Rows that were left out, said on standard error.
  void report(const Console& console) const;
  const data::CsvRows& source() const { return source_; }

 private:
  data::CsvRows source_;
  Index rows_ = 0;
};

}  // namespace mercer::cli
