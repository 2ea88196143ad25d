// fit --trace: scores on rows that are not learned from, after every step of learning.
#pragma once

#include <string>

#include "mercer/models/regression.hpp"

namespace mercer::cli {

class Trace {
 public:
  /// Scores on the rows of the file `validation`, found by the columns of `schema`, go to `path`.
  Trace(std::string path, const std::string& validation, const data::Schema& schema);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const models::Validation& validation() const { return validation_; }

 private:
  void add(const models::TracePoint& point);

  std::string path_, lines_;
  models::Validation validation_;
};

}  // namespace mercer::cli
