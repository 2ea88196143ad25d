// What goes to standard error: notes, warnings and progress.
#pragma once

#include <string>
#include <string_view>

#include "mercer/core/progress.hpp"

namespace mercer::cli {

/// Everything that goes to standard error goes through here: a log that cannot be written (closed,
/// a full disk, a reader that has gone) is no reason to end a run, so that failures are ignored.
void print_error(std::string_view text);

/// Takes a progress bar off the screen, if there is one.
void clear_progress_line();

class Console {
 public:
  /// With `quiet` only warnings and errors are shown.
  Console(std::string_view verb, bool quiet);

  /// Something the user may want to know.
  void note(std::string_view text) const;
  /// Something the user must know: shown even with --quiet.
  void warn(std::string_view text) const;

  /// A bar with an ETA when standard error is a terminal; else a plain line per stage and one every
  /// five seconds; nothing when quiet. Asks to stop once a signal said so
  /// (signals.hpp).
  ProgressCallback progress() const;

 private:
  std::string name_;
  bool quiet_;
};

}  // namespace mercer::cli
