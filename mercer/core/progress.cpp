#include "mercer/core/progress.hpp"

namespace mercer {

ObservedCall::ObservedCall(const ProgressCallback& progress, double seconds_between) {
  if (!progress) return;
  progress_ = [this, progress](const Progress& now) {
    last_ = now;
    last_.warning.clear();  // said once
    return progress(now);
  };
  scope_.emplace(
      [this, progress] {
        Progress again = last_;
        again.between_tiles = true;
        return progress(again) == Action::stop;
      },
      seconds_between);
}

}  // namespace mercer
