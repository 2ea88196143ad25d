// Where predictions go, whatever the model: a CSV file or stream, or the columns of a JSON object;
// and what is said of all of them at the end.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/predict_command.hpp"
#include "cli/record.hpp"
#include "cli/variances.hpp"
#include "mercer/data/csv_writer.hpp"

namespace mercer::cli {

struct PredictionColumn {
  std::string name;
  Vector values;
};

class PredictionSink {
 public:
  /// `names`: the columns to come; `labelled`: a text column "label" stands before them.
  PredictionSink(const PredictCommand& command, const data::Schema& schema,
                 const std::vector<PredictionColumn>& names, bool labelled = false);

  void add(const Matrix& inputs, const std::vector<PredictionColumn>& columns,
           const std::vector<std::string>& labels = {});
  /// Puts the file in place; returns the columns when they go into JSON.
  Json close();

 private:
  const PredictCommand& command_;
  const data::Schema& schema_;
  bool as_json_;
  std::optional<data::CsvWriter> writer_;
  Json json_ = Json::object();
};

/// Of a whole stream of predictions.
struct PredictionTotals {
  Index rows = 0;
  std::optional<double> largest_bound = 0.0;  // unset: there is no bound
  std::string no_bound;                       // and why
  std::string of = "mean";                    // what the bound is about
  VarianceRecord variances;
  Index clamped = 0;
  std::int64_t matvecs = 0;
  double seconds = 0;

  void add(const models::Predictions& predictions) {
    rows += predictions.rows();
    if (largest_bound && predictions.rows() > 0)
      largest_bound = std::max(*largest_bound, predictions.error_bound.maxCoeff());
    variances.add(predictions);
    clamped += predictions.clamped_variances;
    matvecs += predictions.matvecs;
  }
};

/// Warnings, and the JSON object or the closing line.
void report(const PredictCommand& command, const PredictionTotals& totals, const Json& columns,
            const Console& console);

}  // namespace mercer::cli
