// fit --trace: scores on rows that are not learned from, after every step of learning.
#pragma once

#include <string>

#include "mercer/models/fit.hpp"

namespace mercer::cli {

/// A CSV file that is complete after every line.
class TraceFile {
 public:
  /// `header` and lines end with a newline.
  TraceFile(std::string path, std::string header)
      : path_(std::move(path)), lines_(std::move(header)) {}
  void add(const std::string& line);

 private:
  std::string path_, lines_;
};

class Trace {
 public:
  /// Scores on the rows of the file `validation`, found by the columns of `schema`, go to `path`.
  /// Throws DataError naming the row of a target that this fit cannot observe.
  Trace(std::string path, const std::string& validation, const data::Schema& schema,
        const models::FitOptions& options, const std::optional<std::string>& delimiter);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const models::Validation& validation() const { return validation_; }
  /// Why the file lacks the last steps; empty when it has them.
  const std::string& failure() const { return failure_; }

 private:
  TraceFile file_;
  std::string failure_;
  models::Validation validation_;
};

}  // namespace mercer::cli
