// Rows that stay in their file: what a first pass found out of all of them, a uniform sample of
// them in memory, and the source of the passes to come.
//
//   const auto data = data::survey("flights.csv", {.target = "delay"}, {.reservoir = 100'000});
//   data.rows;                        // of the file
//   data.sample.size();               // of the sample; its scaling is that of all rows
#pragma once

#include <memory>

#include "mercer/core/progress.hpp"
#include "mercer/data/row_source.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct SurveyOptions {
  Index reservoir = 100'000;  // rows of the sample at most
  std::uint64_t seed = 0;
};

struct StreamedData {
  /// Random rows in the order of the file. Schema, scaling, fingerprint, messages and what was left
  /// out are those of the whole file; equal rows are not counted.
  Dataset sample;
  Index rows = 0;        // that can be used, in the whole file
  Scaling moments = {};  // means and standard deviations of all rows, scaled or not
  Matrix range = {};     // 2 x d: least and largest value of every input
  double seconds = 0;    // that the pass took
  std::shared_ptr<RowSource> source = {};
};

/// One pass over the file. Throws as read_dataset does; InvalidArgument when the file cannot be
/// read again (standard input, a pipe) and for `impute`, whose medians need all rows at once.
/// Told to stop by the callback it throws Interrupted.
StreamedData survey(const std::string& path, const DataOptions& options,
                    const SurveyOptions& how = {}, const ProgressCallback& progress = {});

}  // namespace mercer::data
MERCER_API_END
