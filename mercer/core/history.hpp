// What an iteration leaves behind, and how it ended: shared by linear solvers and optimisers.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer {

/// random_stop: a solver that is right on average stopped by its draw, as it should.
enum class StopReason {
  converged,
  iteration_limit,
  breakdown,
  stagnation,
  interrupted,
  random_stop
};

/// "converged", "iteration_limit", ... as printed in JSON.
std::string_view to_string(StopReason reason);

/// A growing table: one row per iteration, a fixed number of columns (one per right-hand side).
class History {
 public:
  explicit History(Index columns = 1) : columns_(columns) {}
  void append(ConstVectorView row);
  /// Room for so many rows, so that appending them allocates nothing.
  void reserve(Index rows) { values_.reserve(static_cast<std::size_t>(rows * columns_)); }
  Index rows() const { return columns_ == 0 ? 0 : static_cast<Index>(values_.size()) / columns_; }
  Index columns() const { return columns_; }
  double operator()(Index row, Index column) const {
    return values_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// The largest entry of a row: the slowest right-hand side.
  double worst(Index row) const;

 private:
  Index columns_;
  std::vector<double> values_;
};

/// What an observer is told, once per iteration.
struct Iteration {
  int number = 0;     // iterations completed
  double value = 0;   // largest relative residual, or the objective
  double target = 0;  // what `value` must fall below to stop; 0 when there is none
  double seconds = 0;
};

enum class Action { proceed, stop };

/// Progress lines, time limits and recording are all observers.
using Observer = std::function<Action(const Iteration&)>;

}  // namespace mercer
MERCER_API_END
