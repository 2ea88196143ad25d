// Bytes of a file, of standard input or of memory, unpacked on the way if they are gzip (told by
// their first two bytes, not by the name). Reads in pieces; memory does not grow with the file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer::data {

class ByteSource {
 public:
  /// `path` may be "-" for standard input. Throws IoError when it cannot be opened.
  static ByteSource open(const std::string& path);
  static ByteSource from_memory(std::string bytes, std::string name = "memory");

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  /// Up to `capacity` bytes into `out`; 0 only at the end. Throws IoError when reading fails,
  /// DataError when gzip data is cut or damaged.
  std::size_t read(char* out, std::size_t capacity);

  /// The path as given, or "standard input": for messages.
  const std::string& name() const;
  bool is_gzip() const;

 private:
  struct MERCER_HIDDEN State;
  explicit ByteSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mercer::data
MERCER_API_END
