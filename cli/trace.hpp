// fit --trace: scores on rows that are not learned from, after every step of learning.
#pragma once

#include <string>

#include "mercer/models/latent.hpp"

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

/// Of numbers with Gaussian noise.
class Trace {
 public:
  /// Scores on the rows of the file `validation`, found by the columns of `schema`, go to `path`.
  Trace(std::string path, const std::string& validation, const data::Schema& schema);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const models::Validation& validation() const { return validation_; }

 private:
  TraceFile file_;
  models::Validation validation_;
};

/// Of classes.
class LatentTrace {
 public:
  /// Throws DataError naming the row of `validation` that has none of these classes.
  LatentTrace(std::string path, const std::string& validation, const data::Schema& schema,
              const models::Classes& classes);
  LatentTrace(const LatentTrace&) = delete;
  LatentTrace& operator=(const LatentTrace&) = delete;

  const models::LatentValidation& validation() const { return validation_; }

 private:
  TraceFile file_;
  models::LatentValidation validation_;
};

}  // namespace mercer::cli
