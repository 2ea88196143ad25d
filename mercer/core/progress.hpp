// How far a run is, told to whoever asked, who may say stop.
#pragma once

#include <functional>
#include <string>

#include "mercer/core/history.hpp"

MERCER_API_BEGIN
namespace mercer {

/// Called now and then: what is being done, how far it is (0..1, negative when unknown), detail.
struct Progress {
  std::string stage;
  double fraction = -1;
  std::string detail;
  /// Stopping now ends this stage only: what it has found so far is used.
  bool ends_stage = false;
};
using ProgressCallback = std::function<Action(const Progress&)>;

}  // namespace mercer
MERCER_API_END
