// Ctrl-C, politely: the handler only sets a flag, long loops look at it through their observers.
#pragma once

namespace mercer {

/// From now on SIGINT and SIGTERM set a flag; a second one ends the program at once.
void catch_interrupts();
bool interrupt_requested();
/// For tests and embedders.
void request_interrupt();
void clear_interrupt();

}  // namespace mercer
