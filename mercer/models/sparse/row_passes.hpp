// All rows of a source on the scale of the model, block after block, as often as is asked for:
// what inference over rows in passes reads (inference/sparse/streamed.hpp).
//   Cost: a pass reads and parses the whole file; the next block is read while one is worked on.
#pragma once

#include "mercer/core/progress.hpp"
#include "mercer/data/streamed_data.hpp"
#include "mercer/inference/observations.hpp"

namespace mercer::models {

/// What the passes of a run took.
struct PassReport {
  int passes = 0;
  double seconds = 0;
};

class RowPasses {
 public:
  /// The data and the scaling must outlive this.
  RowPasses(const data::StreamedData& data, const data::Scaling& scaling,
            ProgressCallback progress);

  /// One pass. Throws Interrupted between blocks, DataError when the source does not have the rows
  /// that the survey found.
  void operator()(const std::function<void(const inference::Observations& block)>& each);

  /// Whether a wish to stop ends learning only, and the values so far are kept.
  void set_learning(bool learning) { learning_ = learning; }
  const PassReport& report() const { return report_; }

 private:
  inference::Observations observe(data::RowBlock& block) const;
  void tell(Index rows) const;

  const data::StreamedData& data_;
  const data::Scaling& scaling_;
  ProgressCallback progress_;
  bool learning_ = false;
  PassReport report_;
};

}  // namespace mercer::models
