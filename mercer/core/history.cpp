#include "mercer/core/history.hpp"

#include <algorithm>

#include "mercer/core/error.hpp"

namespace mercer {

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::converged:
      return "converged";
    case StopReason::iteration_limit:
      return "iteration_limit";
    case StopReason::breakdown:
      return "breakdown";
    case StopReason::stagnation:
      return "stagnation";
    case StopReason::interrupted:
      return "interrupted";
    case StopReason::random_stop:
      return "random_stop";
  }
  return "unknown";
}

void History::append(ConstVectorView row) {
  if (row.size() != columns_)
    throw DimensionMismatch("History: length of row", row.size(), "number of columns", columns_);
  values_.insert(values_.end(), row.data(), row.data() + row.size());
}

double History::worst(Index row) const {
  const auto first = values_.begin() + row * columns_;
  return *std::max_element(first, first + columns_);
}

}  // namespace mercer
