#include "mercer/core/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "mercer/core/error.hpp"

namespace mercer {
namespace {

// Names of temporary files, where a signal handler can read them: no memory is freed that it may
// be reading. Files beyond these few at once are not listed.
struct TemporaryName {
  std::atomic<int> state{0};  // 0: free, 1: being written, 2: in use
  char name[PATH_MAX] = {};
};
std::array<TemporaryName, 8> temporary_names;
static_assert(std::atomic<int>::is_always_lock_free);

int list_temporary(const std::string& name) {
  if (name.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < temporary_names.size(); ++i) {
    auto& slot = temporary_names[i];
    int free = 0;
    if (!slot.state.compare_exchange_strong(free, 1)) continue;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.state = 2;
    return static_cast<int>(i);
  }
  return -1;
}

// A write that fails for want of room, in words that say what can be done.
std::string reason_of(int error) {
  if (error == ENOSPC) return "no space is left on the disk";
  if (error == EDQUOT) return "the disk quota is used up";
  if (error == EFBIG) return "the file may not grow further (a limit such as that of ulimit -f)";
  return std::strerror(error);
}

}  // namespace

void remove_temporary_files() {
  for (const auto& slot : temporary_names)
    if (slot.state == 2) unlink(slot.name);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code unknown;  // of a path that cannot be looked at; opening it says why
  if (std::filesystem::is_directory(path_, unknown))
    throw IoError(fmt::format("cannot write '{}': it is a folder; name a file", path_));
  // The mode of an ordinary file. mkstemp would make it private, and the umask of the process can
  // only be asked for by changing it under the feet of other threads.
  std::random_device random;
  int descriptor = -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}.tmp-{:06x}", path_, random() & 0xffffff);
    descriptor = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) break;
  }
  if (descriptor >= 0) {
    slot_ = list_temporary(temporary_);
    file_ = fdopen(descriptor, "wb");
    if (file_ != nullptr) return;
  }
  const int error = errno;
  if (descriptor >= 0) {
    close(descriptor);
    unlink(temporary_.c_str());
  }
  forget();
  throw IoError(fmt::format("cannot write '{}': {}", path_, reason_of(error)));
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  forget();
}

void AtomicFile::forget() {
  temporary_.clear();
  if (slot_ >= 0) temporary_names[static_cast<std::size_t>(slot_)].state = 0;
  slot_ = -1;
}

void AtomicFile::fail(const char* doing) {
  throw IoError(fmt::format("cannot {} '{}': {}", doing, path_, reason_of(errno)));
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
  forget();
  // Sync the folder too, so that the new name survives a power cut.
  const auto folder = std::filesystem::path(path_).parent_path();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace mercer
