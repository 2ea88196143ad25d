#include "cli/signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "mercer/core/atomic_file.hpp"

namespace mercer::cli {
namespace {

// Long enough to write a checkpoint and to take temporary files away, short enough for those who
// send SIGKILL some seconds after SIGTERM.
constexpr unsigned kSecondsToLeave = 2;

volatile std::sig_atomic_t leaving_signal = 0;
volatile std::sig_atomic_t patient = 0;
volatile std::sig_atomic_t pressed_once = 0;

// Only what may be called in a signal handler.
[[noreturn]] void end_now() {
  remove_temporary_files();
  const char* text = leaving_signal == SIGINT    ? "mercer: interrupted\n"
                     : leaving_signal == SIGTERM ? "mercer: ended by SIGTERM\n"
                                                 : "mercer: ended by SIGHUP\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
  _exit(128 + leaving_signal);
}

extern "C" void on_alarm(int) {
  if (leaving_signal != 0) end_now();
  remove_temporary_files();  // someone else's alarm: what it does by default
  std::signal(SIGALRM, SIG_DFL);
  std::raise(SIGALRM);
}

extern "C" void on_signal(int signal) {
  const int error = errno;
  if (signal == SIGINT && patient != 0 && pressed_once == 0) {
    pressed_once = 1;
  } else if (leaving_signal != 0) {
    end_now();
  } else {
    leaving_signal = signal;
    alarm(kSecondsToLeave);
  }
  errno = error;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

bool ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void catch_signals() {
  handle(SIGALRM, on_alarm);
  // What the caller has ignored stays so: `nohup`, and jobs that a script runs in the background.
  if (!ignored(SIGINT)) handle(SIGINT, on_signal);
  if (!ignored(SIGHUP)) handle(SIGHUP, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

int leaving() { return leaving_signal; }

void leave(int signal) {
  if (leaving_signal != 0) return;
  leaving_signal = signal;
  alarm(kSecondsToLeave);
}

int exit_code_when_stopped() { return 128 + (leaving_signal != 0 ? leaving_signal : SIGINT); }

PatientWithCtrlC::PatientWithCtrlC() { patient = 1; }
PatientWithCtrlC::~PatientWithCtrlC() { patient = 0; }
bool PatientWithCtrlC::pressed() { return pressed_once != 0; }

void open_closed_standard_streams() {
  const int descriptors[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (const int descriptor : descriptors) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one: those below are open by now. The direction is the wrong
    // one on purpose, so that using the stream fails.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int opened = open("/dev/null", mode);
  }
}

}  // namespace mercer::cli
