#include "cli/column_spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"

namespace mercer::cli {
namespace {

[[noreturn]] void fail_spool(const std::string& folder) {
  throw IoError(
      fmt::format("cannot keep the columns of the JSON object in a temporary file in {}: {}; "
                  "write them to a CSV file with `output=FILE`, or let TMPDIR name another folder",
                  folder, std::strerror(errno)));
}

std::string spool_folder() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

int open_unnamed(const std::string& folder) {
#ifdef O_TMPFILE
  const int unnamed = open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (unnamed >= 0) return unnamed;
#endif
  std::string name = folder + "/mercer-XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) fail_spool(folder);
  unlink(name.c_str());
  return descriptor;
}

}  // namespace

ColumnSpool::~ColumnSpool() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ColumnSpool::add(std::size_t column, std::string_view text) {
  columns_[column].rest += text;
  in_memory_ += text.size();
  if (in_memory_ > memory_) write_out();
}

void ColumnSpool::write_out() {
  if (descriptor_ < 0) descriptor_ = open_unnamed(spool_folder());
  for (auto& column : columns_) {
    if (column.rest.empty()) continue;
    std::size_t done = 0;
    while (done < column.rest.size()) {
      const auto count = pwrite(descriptor_, column.rest.data() + done, column.rest.size() - done,
                                static_cast<off_t>(file_bytes_ + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_spool(spool_folder());
      done += static_cast<std::size_t>(count);
    }
    column.pieces.push_back({file_bytes_, done});
    file_bytes_ += done;
    column.rest.clear();
  }
  in_memory_ = 0;
}

void ColumnSpool::read(std::size_t column, const std::function<void(std::string_view)>& take) {
  std::string buffer;
  for (const auto& piece : columns_[column].pieces) {
    for (std::uint64_t done = 0; done < piece.bytes;) {
      if (stop_requested(/*now=*/true)) throw Interrupted("interrupted while writing");
      buffer.resize(std::min<std::uint64_t>(piece.bytes - done, std::uint64_t{1} << 18));
      const auto count =
          pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(piece.first + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_spool(spool_folder());
      take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
      done += static_cast<std::uint64_t>(count);
    }
  }
  if (!columns_[column].rest.empty()) take(columns_[column].rest);
}

}  // namespace mercer::cli
