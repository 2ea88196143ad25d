// How far a run is, told to whoever asked, who may say stop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "mercer/core/history.hpp"
#include "mercer/core/stop.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Called now and then: what is being done, how far it is (0..1, negative when unknown), detail.
struct Progress {
  std::string stage = {};
  double fraction = -1;
  std::string detail = {};
  /// Stopping now ends this stage only: what it has found so far is used.
  bool ends_stage = false;
  /// Hyperparameters have been learned, by this stage or before it.
  bool learned = false;
  /// About the seconds that the rest of the call takes once learning ends; negative when unknown.
  double seconds_after = -1;
  /// Something that went wrong without ending the run, said once; or empty.
  std::string warning = {};
  /// There is nothing new: the last one again, asked in the middle of long work (a product, a
  /// factorisation), whether it is to be stopped there. Some times a second, by the clock.
  bool between_tiles = false;
};
using ProgressCallback = std::function<Action(const Progress&)>;

/// One call of the library under the eyes of `progress`: long work inside it is cancelled between
/// tiles (Interrupted) when that says stop. Told to this object instead of to the callback itself,
/// so that it knows the stage.
class ObservedCall {
 public:
  explicit ObservedCall(const ProgressCallback& progress,
                        double seconds_between = kSecondsBetweenQuestions);
  /// What to hand down in place of the callback; empty when there is none.
  const ProgressCallback& progress() const { return progress_; }

 private:
  ProgressCallback progress_;
  Progress last_;
  std::optional<StopScope> scope_;
};

}  // namespace mercer
MERCER_API_END
