#include "mercer/models/sparse/row_passes.hpp"

#include <fmt/format.h>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/read_ahead.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::models {

RowPasses::RowPasses(const data::StreamedData& data, const data::Scaling& scaling,
                     ProgressCallback progress)
    : data_(data), scaling_(scaling), progress_(std::move(progress)) {}

inference::Observations RowPasses::observe(data::RowBlock& block) const {
  inference::Observations out;
  out.x = std::move(block.inputs);
  scaling_.scale_inputs(out.x);
  Vector y = std::move(block.target);
  if (data_.sample.schema.log_target) y = y.array().log();
  scaling_.scale_target(y);
  out.y = y;
  out.noise = row_noise(block.noise, scaling_);
  return out;
}

void RowPasses::tell(Index rows) const {
  if (!progress_) return;
  const double share = static_cast<double>(rows) / static_cast<double>(data_.rows);
  if (progress_({.stage = fmt::format("pass {} over all rows", report_.passes + 2),
                 .fraction = std::min(share, 1.0),
                 .detail = fmt::format("{} of {} rows", count_text(rows), count_text(data_.rows)),
                 .ends_stage = learning_,
                 .learned = learning_}) == Action::stop)
    throw Interrupted("interrupted in a pass over all rows");
}

void RowPasses::operator()(const std::function<void(const inference::Observations& block)>& each) {
  const Timer timer;
  data_.source->rewind();
  data::ReadAhead blocks(*data_.source);
  Index rows = 0;
  tell(rows);
  for (data::RowBlock block; blocks.next(block);) {
    const Index count = block.rows();
    each(observe(block));
    rows += count;
    tell(rows);
  }
  if (data_.source->changed())
    throw DataError(fmt::format("{}: the file has changed since the first pass; run again",
                                data_.source->name()));
  if (rows != data_.rows)
    throw DataError(fmt::format(
        "{}: a pass found {} rows, the first one {}. A column with one value only has missing "
        "cells: leave that out with `exclude`",
        data_.source->name(), count_text(rows), count_text(data_.rows)));
  ++report_.passes;
  report_.seconds += timer.seconds();
}

}  // namespace mercer::models
