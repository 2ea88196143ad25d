#include "mercer/core/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "mercer/core/error.hpp"

namespace mercer {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  if (std::filesystem::is_directory(path_))
    throw IoError(fmt::format("cannot write '{}': it is a folder; name a file", path_));
  temporary_ = path_ + ".tmp-XXXXXX";
  const int descriptor = mkstemp(temporary_.data());
  if (descriptor < 0) {
    temporary_.clear();
    throw IoError(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
  }
  // mkstemp makes the file private; give it the mode an ordinary file would have had.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  file_ = fdopen(descriptor, "wb");
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) {
  throw IoError(fmt::format("cannot {} '{}': {}", doing, path_, std::strerror(errno)));
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail("write");
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail("write");
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (closed != 0) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  temporary_.clear();
  // Sync the folder too, so that the new name survives a power cut.
  const auto folder = std::filesystem::path(path_).parent_path();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace mercer
