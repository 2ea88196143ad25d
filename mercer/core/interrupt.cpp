#include "mercer/core/interrupt.hpp"

#include <unistd.h>

#include <csignal>
#include <string>

#include "mercer/core/error.hpp"

namespace mercer {
namespace {

volatile std::sig_atomic_t requested = 0;

extern "C" void on_signal(int) {
  if (requested != 0) _exit(130);
  requested = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupt_requested() { return requested != 0; }

void stop_if_interrupted(std::string_view doing) {
  if (requested != 0) throw Interrupted("interrupted while " + std::string(doing));
}

void request_interrupt() { requested = 1; }
void clear_interrupt() { requested = 0; }

}  // namespace mercer
