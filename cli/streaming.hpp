// Rows that are read in passes instead of into memory: when fit and plan do so, and what cannot be
// had then.
#pragma once

#include <optional>

#include "cli/fit_command.hpp"
#include "mercer/data/streamed_data.hpp"

namespace mercer::cli {

/// What fit and plan work on: all rows, or what a first pass over them found.
struct FitInput {
  data::Dataset all;
  std::optional<data::StreamedData> stream;

  /// Of a stream its sample; what is said of the file is said of all of it.
  const data::Dataset& table() const { return stream ? stream->sample : all; }
  Index rows() const { return stream ? stream->rows : all.size(); }
};

/// With --stream always: throws InvalidArgument for what needs all rows in memory, and settles that
/// numbers are learned. Before settle_task.
void settle_stream(FitCommand& command, const Arguments& arguments);

/// Reads all rows; in passes where --stream says so, or where they do not fit and passes will do.
FitInput read_rows(FitCommand& command, const Arguments& arguments, const Console& console);
/// Whether what does not fit into memory may be read in passes instead.
bool may_stream(const FitCommand& command, const Arguments& arguments);
/// The first pass. `why`: said in a note unless empty.
FitInput survey_rows(FitCommand& command, const Console& console, const std::string& why);

}  // namespace mercer::cli
