// Ctrl-C, politely: the handler only sets a flag, long loops look at it through their observers.
#pragma once

#include <string_view>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// From now on SIGINT and SIGTERM set a flag; a second one ends the program at once.
void catch_interrupts();
bool interrupt_requested();
/// Throws Interrupted ("interrupted while ...") once it was; for loops without an observer.
void stop_if_interrupted(std::string_view doing);
/// For tests and embedders.
void request_interrupt();
void clear_interrupt();

}  // namespace mercer
MERCER_API_END
