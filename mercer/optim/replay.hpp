// Evaluations that can be played back. An optimiser is a deterministic function of the values it
// is given, so a run that was killed is resumed by running it again and answering its first
// questions from the log: it ends with the same bits as a run that was never interrupted.
//
//   ReplayLog log(read_from_checkpoint);
//   const auto f = log.record(expensive, [](const ReplayLog& l) { write_checkpoint(l); });
//   lbfgs(f, start);
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mercer/optim/objective.hpp"

MERCER_API_BEGIN
namespace mercer::optim {

struct Evaluation {
  Vector theta;
  double value = 0;  // +inf for a theta that was not positive definite
  Vector gradient;
};

class ReplayLog {
 public:
  explicit ReplayLog(std::vector<Evaluation> recorded = {});

  /// `live`, answered from the log while the thetas asked for are those of the log, bit for bit.
  /// From the first one that is not, the rest of the log is dropped and `live` is called; each of
  /// its answers is appended, then `after_live` is called (to write a checkpoint). The log must
  /// outlive what is returned. NotPositiveDefinite is recorded as +inf; other errors pass through.
  Objective record(Objective live, std::function<void(const ReplayLog&)> after_live = {});

  const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  Index num_replayed() const { return replayed_; }
  Index num_live() const { return live_; }
  /// Recorded evaluations that a different theta made useless: 0 when the same run is resumed.
  Index num_dropped() const { return dropped_; }

  /// theta, value, gradient of each evaluation, one after the other: n * 2 + 1 numbers each.
  std::vector<double> packed() const;
  static ReplayLog unpacked(std::span<const double> numbers, Index num_parameters);

 private:
  std::vector<Evaluation> evaluations_;
  Index position_ = 0;  // the next evaluation to answer with
  Index replayed_ = 0, live_ = 0, dropped_ = 0;
};

}  // namespace mercer::optim
MERCER_API_END
