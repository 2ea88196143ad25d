#include "cli/exit_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "cli/console.hpp"
#include "cli/option_list.hpp"
#include "cli/signals.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

// One line, whatever the message holds.
int say(std::string_view name, std::string message, int code) {
  // Ctrl-C cuts reads and writes short, and ends the program that feeds this one: what fails then
  // is no fault of the data.
  if (leaving() != 0) {
    if (code != exit_interrupted) message = "interrupted";
    if (leaving() != SIGINT)
      message = fmt::format("ended by {}: {}", leaving() == SIGHUP ? "SIGHUP" : "SIGTERM", message);
    code = exit_code_when_stopped();
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  clear_progress_line();
  print_error(data::printable(fmt::format("{}: {}", name, with_dashes(message))) + "\n");
  return code;
}

}  // namespace

int exit_code_of(std::string_view name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const BrokenPipe&) {
    clear_progress_line();
    return leaving() != 0 ? exit_code_when_stopped() : exit_pipe;
  } catch (const Failure& e) {
    return say(name, e.what(), e.code);
  } catch (const InvalidArgument& e) {
    return say(name, e.what(), exit_usage);
  } catch (const DataError& e) {
    return say(name, e.what(), exit_data);
  } catch (const DoesNotFit& e) {
    return say(name, e.what(), exit_memory);
  } catch (const ToleranceNotReached& e) {
    return say(name, e.what(), exit_tolerance);
  } catch (const ModelFileError& e) {
    return say(name, e.what(), exit_model);
  } catch (const Interrupted& e) {
    return say(name, e.what(), exit_interrupted);
  } catch (const std::bad_alloc&) {
    return say(name,
               "the machine refused more memory; free some, work on fewer rows, or give a smaller "
               "--memory where there is one, so that a leaner method is chosen",
               exit_memory);
  } catch (const NotPositiveDefinite& e) {
    return say(name,
               fmt::format("{} (the kernel matrix is singular in double precision: more --noise, a "
                           "shorter --lengthscale or a rougher --kernel mend that)",
                           e.what()),
               exit_tolerance);
  } catch (const Error& e) {
    return say(name, e.what(), exit_internal);
  } catch (const std::exception& e) {
    return say(name, fmt::format("internal error: {}", e.what()), exit_internal);
  }
}

void print_out(std::string_view text) {
  print_exactly(data::printable(with_dashes(text), data::Plain::lines));
}

void print_exactly(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw BrokenPipe("standard output: its reader has closed it");
    throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

}  // namespace mercer::cli
