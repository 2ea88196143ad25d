// Where bytes go: a file that appears whole or not at all, gzip when its name ends in .gz, standard
// output ("-"), or a device or pipe as it is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer::data {

class ByteSink {
 public:
  /// Throws IoError when `path` cannot be written.
  explicit ByteSink(const std::string& path);
  /// Without close() before it, a file is not written at all.
  ~ByteSink();
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  /// Throws IoError if the bytes do not arrive, Interrupted when a StopScope says so.
  void write(std::string_view bytes);
  /// Writes out what is left and puts a file in its place.
  void close();

 private:
  struct MERCER_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace mercer::data
MERCER_API_END
