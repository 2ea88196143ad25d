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
#include <optional>
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

// The file that a name stands for: symbolic links are followed, also to one that is not there yet,
// so that the link stays a link.
std::string behind_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int most = 40;  // as many as Linux follows
  fs::path file = path;
  std::error_code error;
  for (int i = 0; i <= most; ++i) {
    if (!fs::is_symlink(fs::symlink_status(file, error))) return file.string();
    const auto target = fs::read_symlink(file, error);
    if (error) return file.string();  // opening it says why
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  throw IoError(fmt::format("cannot write '{}': {}", path, std::strerror(ELOOP)));
}

// What a file that is replaced looked like; unset when there is none.
std::optional<struct stat> old_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return info;
}

// A rename needs no permission on the file that it replaces, so it is asked for here. Nobody may
// write a file without any write bit; root too means to keep it.
void require_writable(const std::string& path, const std::string& file, const struct stat& old) {
  if ((old.st_mode & 0222U) != 0 && access(file.c_str(), W_OK) == 0) return;
  throw IoError(fmt::format(
      "cannot write '{}': it is read-only; name another file, or allow writing with chmod u+w",
      path));
}

// Owner, group and mode of the file that is replaced. Where the group cannot be kept, the rights
// that the old one had are given to nobody. Where the file system knows no modes the file stays
// as it was made, private.
void take_over(int descriptor, const struct stat& old) {
  mode_t mode = old.st_mode & 0777U;
  struct stat made {};
  if (fstat(descriptor, &made) != 0) return;
  if (made.st_uid != old.st_uid && fchown(descriptor, old.st_uid, static_cast<gid_t>(-1)) != 0)
    errno = 0;  // only root may give a file away: ours from now on
  if (made.st_gid != old.st_gid && fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= ~static_cast<mode_t>(0070);
  if (fchmod(descriptor, mode) != 0) errno = 0;
}

}  // namespace

void remove_temporary_files() {
  for (const auto& slot : temporary_names)
    if (slot.state == 2) unlink(slot.name);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(behind_links(path_)) {
  std::error_code unknown;  // of a path that cannot be looked at; opening it says why
  if (std::filesystem::is_directory(target_, unknown))
    throw IoError(fmt::format("cannot write '{}': it is a folder; name a file", path_));
  const auto old = old_file(target_);
  if (old) require_writable(path_, target_, *old);
  // The mode of an ordinary file; private until it has the owner and mode of the one it replaces.
  // mkstemp would leave it private, and the umask of the process can only be asked for by changing
  // it under the feet of other threads.
  const mode_t mode = old ? 0600 : 0666;
  std::random_device random;
  int descriptor = -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}.tmp-{:06x}", target_, random() & 0xffffff);
    descriptor = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EEXIST) break;
  }
  if (descriptor >= 0) {
    slot_ = list_temporary(temporary_);
    if (old) take_over(descriptor, *old);
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
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace");
  forget();
  // Sync the folder too, so that the new name survives a power cut.
  const auto folder = std::filesystem::path(target_).parent_path();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace mercer
