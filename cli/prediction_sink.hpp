// Where predictions go, whatever the model: a CSV file or stream, or the columns of a JSON object;
// and what is said of all of them at the end.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/column_spool.hpp"
#include "cli/predict_command.hpp"
#include "cli/record.hpp"
#include "cli/variances.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/row_block.hpp"

namespace mercer::cli {

struct PredictionColumn {
  std::string name;
  Vector values;
};

class PredictionSink {
 public:
  /// `carried`: names of the columns of DATA that stand in front; `names`: the columns to come;
  /// `labelled`: a text column "label" stands before them. A column of DATA that has the name of
  /// one of predictions is written as input_NAME, and the console says so.
  PredictionSink(const PredictCommand& command, std::vector<std::string> carried,
                 const std::vector<PredictionColumn>& names, bool labelled, const Console& console);

  void add(const data::RowBlock& rows, const std::vector<PredictionColumn>& columns,
           const std::vector<std::string>& labels = {});
  /// Puts a CSV file in place.
  void close();
  /// The columns as members of a JSON object that has begun; nothing when they went into a CSV
  /// file. Only here is anything of them printed: a run that fails has printed nothing.
  void print_members();

 private:
  void add_json(const data::RowBlock& rows, const std::vector<PredictionColumn>& columns,
                const std::vector<std::string>& labels);
  void print_array(std::size_t column, const std::string& indent);

  bool numbered_;
  std::vector<std::string> carried_;  // names in DATA
  std::vector<std::string> names_;    // row, label and those of predictions
  std::unique_ptr<data::CsvWriter> writer_;
  std::unique_ptr<ColumnSpool> json_;  // carried_, then names_
  bool any_rows_ = false;
};

/// Of a whole stream of predictions.
struct PredictionTotals {
  Index rows = 0;
  std::optional<double> largest_bound = 0.0;  // unset: there is no bound
  std::string no_bound;                       // and why
  std::string of = "mean";                    // what the bound is about
  VarianceRecord variances;
  Index clamped = 0;
  double jitter = 0;
  std::int64_t matvecs = 0;
  double seconds = 0;

  void add(const models::Predictions& predictions) {
    rows += predictions.rows();
    if (largest_bound && predictions.rows() > 0)
      largest_bound = std::max(*largest_bound, predictions.mean_error_bound.size() > 0
                                                   ? predictions.mean_error_bound.maxCoeff()
                                                   : predictions.error_bound.maxCoeff());
    variances.add(predictions);
    clamped += predictions.clamped_variances;
    jitter = std::max(jitter, predictions.jitter);
    matvecs += predictions.matvecs;
  }
};

/// Warnings, and the JSON object or the closing line.
void report(const PredictCommand& command, const PredictionTotals& totals, PredictionSink& sink,
            const Console& console);

}  // namespace mercer::cli
