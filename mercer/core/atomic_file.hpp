// Files that appear whole or not at all: written to a temporary name beside the target, synced,
// then renamed. If the writer is destroyed before commit(), nothing is left behind; a program that
// ends in a signal handler calls remove_temporary_files() there.
//   A file that was there is replaced with its own owner, group and mode (access control lists and
//   other hard links are not carried over); a symbolic link is written through; a read-only file is
//   refused. A new file has the mode that the umask leaves.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

class AtomicFile {
 public:
  /// Opens a temporary file in the folder of `path`, or of the file that this links to; throws
  /// IoError with the reason.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Flushes, syncs and renames; after it the file is at `path`.
  void commit();

 private:
  [[noreturn]] void fail(const char* doing);

  void forget();

  std::string path_;    // as given, for messages
  std::string target_;  // the same without symbolic links
  std::string temporary_;
  int slot_ = -1;  // in the list of temporary files
  std::FILE* file_ = nullptr;
};

/// Removes the temporary files of all AtomicFiles there are; for a program that ends at once. May
/// be called in a signal handler.
void remove_temporary_files();

}  // namespace mercer
MERCER_API_END
