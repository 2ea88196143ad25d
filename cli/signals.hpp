// What signals do to a run.
//   SIGTERM, SIGHUP, SIGINT   the verb ends at the next tile of whatever it computes; the
//                             checkpoint is written where there is one; exit code 128 + signal.
//   SIGINT while fit learns   the first one only ends the learning (PatientWithCtrlC).
//   The same wish again       ends the program at once.
// A run that has not ended two seconds after it was told to is ended by a timer. Temporary files
// are removed on every way out but SIGKILL.
#pragma once

namespace mercer::cli {

/// Installs the handlers. A SIGHUP that is ignored already (nohup) stays ignored; so do, from now
/// on, SIGPIPE and SIGXFSZ: what they are about is an error of the write, said in words.
void catch_signals();

/// The signal that ends this run; 0 as long as it goes on.
int leaving();
/// From inside: as if this signal had come.
void leave(int signal);
/// The exit code of a run that was stopped: 128 + its signal, 130 when learning was ended by
/// Ctrl-C.
int exit_code_when_stopped();

/// While it lives, the first Ctrl-C is kept for whoever asks, and only the second means leave().
class PatientWithCtrlC {
 public:
  PatientWithCtrlC();
  ~PatientWithCtrlC();
  PatientWithCtrlC(const PatientWithCtrlC&) = delete;
  PatientWithCtrlC& operator=(const PatientWithCtrlC&) = delete;
  /// Ctrl-C was pressed once.
  static bool pressed();
};

/// Standard input, output and error that were closed by the caller get a descriptor on which every
/// read and write fails, so that no file that is opened later takes their number and their bytes.
void open_closed_standard_streams();

}  // namespace mercer::cli
