// DATA of predict and evaluate: rows for a model's columns, block by block, with progress.
#pragma once

#include <string>

#include "cli/console.hpp"
#include "mercer/data/predict_stream.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::cli {

/// The columns that predictions need. Only with Gaussian noise is a count part of them: it says how
/// noisy the mean of so many observations is. Otherwise a prediction is of one observation.
data::Schema prediction_schema(data::Schema schema, bool gaussian);

class RowSource {
 public:
  /// An unreadable file is exit code 3.
  RowSource(const std::string& path, const data::Schema& schema, data::PredictOptions options);

  /// The next rows; false at the end. Blocks are a few tens of megabytes at most.
  bool next(data::PredictBlock& block);
  Index rows() const { return rows_; }
  /// "new.csv: line 3", of a row of a block.
  std::string place(const data::PredictBlock& block, Index row) const;

  /// Predictions for a block of them; a row that overflows is named by its line (DataError).
  models::Predictions predict(const models::Predictor& predictor, const data::PredictBlock& block,
                              models::RowSample& sample, const ProgressCallback& progress) const;

  /// Progress over the whole file, whatever a single block reports.
  ProgressCallback progress(const Console& console) const;
  /// Rows that were left out, said on standard error.
  void report(const Console& console) const;
  const data::PredictStream& stream() const { return stream_; }

 private:
  std::string name_;
  data::PredictStream stream_;
  Index block_rows_;
  double file_bytes_ = 0;  // 0: not known
  Index rows_ = 0;
};

}  // namespace mercer::cli
