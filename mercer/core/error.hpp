// The error family. A caller's mistake throws, naming the thing and both values; a numerical
// outcome (limit reached, breakdown) is a StopReason instead.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A bad option or argument (exit code 2 in the command line).
struct InvalidArgument : Error {
  using Error::Error;
};

struct DimensionMismatch : InvalidArgument {
  using InvalidArgument::InvalidArgument;
  /// DimensionMismatch("cg: rows of b", b.rows(), "size of A", a.size())
  DimensionMismatch(std::string_view what, Index value, std::string_view other, Index other_value);
};

/// A factorisation met a pivot that is not positive; `pivot` is its 0-based index.
struct NotPositiveDefinite : Error {
  NotPositiveDefinite(const std::string& message, Index pivot_index)
      : Error(message), pivot(pivot_index) {}
  Index pivot;
};

/// A file that cannot be opened, read or written.
struct IoError : Error {
  using Error::Error;
};

/// The reader of a pipe that is being written to has gone away (exit 141, without a word).
struct BrokenPipe : IoError {
  using IoError::IoError;
};

/// Data that cannot be used: the message says what, where (row, column) and what to do (exit 3).
struct DataError : Error {
  using Error::Error;
};

/// Nothing fits into the memory budget; the message says what would (exit 4).
struct DoesNotFit : Error {
  using Error::Error;
};

/// A solve missed its tolerance and its answer cannot be stood by (exit 5).
struct ToleranceNotReached : Error {
  using Error::Error;
};

/// A model or checkpoint file that is damaged, truncated or newer than this program (exit 6).
struct ModelFileError : Error {
  using Error::Error;
};

/// The user asked to stop; whatever could be kept has been kept (exit 130).
struct Interrupted : Error {
  using Error::Error;
};

}  // namespace mercer
MERCER_API_END
