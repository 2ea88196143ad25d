// Exit codes, and the one place where an error becomes a line on standard error and a code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "mercer/core/error.hpp"

namespace mercer::cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_internal = 1,
  exit_usage = 2,
  exit_data = 3,
  exit_memory = 4,
  exit_tolerance = 5,
  exit_model = 6,
  exit_interrupted = 130,  // 128 + SIGINT; SIGTERM gives 143, SIGHUP 129
  exit_pipe = 141,         // 128 + SIGPIPE
};

/// An error whose exit code its type does not say: an IoError may be about input or output.
struct Failure : Error {
  Failure(int exit_code, const std::string& message) : Error(message), code(exit_code) {}
  int code;
};

/// Runs `body`; an exception becomes "NAME: sentence" on standard error and its exit code. With
/// `json` it also becomes {"error": {"code", "kind", "message"}} on standard output, unless
/// something stands there already. A pipe whose reader has gone (`| head`) ends the program without
/// a word, as it ends others.
int exit_code_of(std::string_view name, bool json, const std::function<int()>& body);

/// Runs `body`; an IoError in it becomes a Failure with this code.
template <class Body>
auto io_errors_as(int code, Body&& body) {
  try {
    return body();
  } catch (const BrokenPipe&) {
    throw;
  } catch (const IoError& error) {
    throw Failure(code, error.what());
  }
}

/// Writes to standard output, options named as they are typed (option_list.hpp) and nothing that
/// steers a terminal, and makes sure that it arrived (IoError if not).
void print_out(std::string_view text);
/// The same without a change to the text.
void print_exactly(std::string_view text);

}  // namespace mercer::cli
