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
#include "cli/record.hpp"
#include "cli/signals.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

bool standard_output_begun = false;

std::string_view kind_of(int code) {
  switch (code) {
    case exit_usage:
      return "usage";
    case exit_data:
      return "data";
    case exit_memory:
      return "memory";
    case exit_tolerance:
      return "tolerance";
    case exit_model:
      return "model";
    case exit_internal:
      return "internal";
    default:
      return "interrupted";
  }
}

void print_error_object(const std::string& message, int code) {
  const Json object = {{"error", {{"code", code}, {"kind", kind_of(code)}, {"message", message}}}};
  try {
    const auto text = object.dump(2, ' ', false, Json::error_handler_t::replace);
    print_exactly(data::printable(text, data::Plain::json) + "\n");
  } catch (const Error&) {  // the exit code and standard error say it too
  }
}

// One line, whatever the message holds.
int say(std::string_view name, bool json, std::string message, int code) {
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
  message = with_dashes(message);
  print_error(data::printable(fmt::format("{}: {}", name, message)) + "\n");
  if (json && !standard_output_begun) print_error_object(message, code);
  return code;
}

// The verbs that take the hyperparameters of a model as they are.
bool uses_a_model(std::string_view name) {
  return name.ends_with("predict") || name.ends_with("evaluate");
}

}  // namespace

int exit_code_of(std::string_view name, bool json, const std::function<int()>& body) {
  const auto end = [&](const std::string& message, int code) {
    return say(name, json, message, code);
  };
  try {
    return body();
  } catch (const BrokenPipe&) {
    clear_progress_line();
    return leaving() != 0 ? exit_code_when_stopped() : exit_pipe;
  } catch (const Failure& e) {
    return end(e.what(), e.code);
  } catch (const InvalidArgument& e) {
    return end(e.what(), exit_usage);
  } catch (const DataError& e) {
    return end(e.what(), exit_data);
  } catch (const DoesNotFit& e) {
    return end(e.what(), exit_memory);
  } catch (const ToleranceNotReached& e) {
    return end(e.what(), exit_tolerance);
  } catch (const ModelFileError& e) {
    return end(e.what(), exit_model);
  } catch (const Interrupted& e) {
    return end(e.what(), exit_interrupted);
  } catch (const std::bad_alloc&) {
    return end(
        "the machine refused more memory; free some, work on fewer rows, or give a smaller "
        "--memory where there is one, so that a leaner method is chosen",
        exit_memory);
  } catch (const NotPositiveDefinite& e) {
    return end(fmt::format("{} (the kernel matrix is singular in double precision: {}more --noise, "
                           "a shorter --lengthscale or a rougher --kernel mend that)",
                           e.what(), uses_a_model(name) ? "a fit with " : ""),
               exit_tolerance);
  } catch (const Error& e) {
    return end(e.what(), exit_internal);
  } catch (const std::exception& e) {
    return end(fmt::format("internal error: {}", e.what()), exit_internal);
  }
}

void print_out(std::string_view text) {
  print_exactly(data::printable(with_dashes(text), data::Plain::lines));
}

void print_exactly(std::string_view text) {
  standard_output_begun = standard_output_begun || !text.empty();
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw BrokenPipe("standard output: its reader has closed it");
    throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

}  // namespace mercer::cli
