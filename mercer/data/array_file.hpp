// The container behind model and checkpoint files: a JSON header and checked arrays of doubles.
//
//   offset  bytes
//   0       8      magic "MERCER\r\n"
//   8       4      format version: 5 of models, 1 of checkpoints (a newer one is refused)
//   12      4      CRC-32 of bytes 16 .. end of the JSON header
//   16      8      size of the whole file
//   24      8      size of the JSON header
//   32      ...    JSON header; its "arrays" lists name, rows, columns and CRC-32 of each array
//   ...     ...    the arrays, column-major little-endian doubles, one after another
//
// Every byte is covered by a check, so a damaged or truncated file is refused, never half-read.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "mercer/core/types.hpp"

namespace mercer::data {

struct ArrayFile {
  nlohmann::json header;
  std::map<std::string, Matrix> arrays;
  std::uint32_t version = 1;
};

/// Written to a temporary name, synced and renamed.
void write_array_file(const std::string& path, const ArrayFile& file);

/// Throws IoError when it cannot be opened, ModelFileError when it is not a whole file of this
/// kind and version. `kind` is what header["kind"] must say ("model", "checkpoint").
ArrayFile read_array_file(const std::string& path, std::string_view kind);

/// The same from memory; `name` is for messages.
ArrayFile parse_array_file(std::span<const unsigned char> bytes, std::string_view name,
                           std::string_view kind);

}  // namespace mercer::data
