#include "mercer/data/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"

namespace mercer::data {
namespace {

constexpr std::size_t packed_bytes = std::size_t{1} << 18;

/// Formats that people hand over by mistake, by their first bytes.
const char* foreign_format(std::string_view start) {
  const auto is = [&](std::string_view magic) { return start.substr(0, magic.size()) == magic; };
  if (is("PK\x03\x04")) return "a zip archive or a spreadsheet (xlsx)";
  if (is("\x28\xB5\x2F\xFD")) return "zstd-compressed";
  if (is("\xFD"
         "7zXZ"))
    return "xz-compressed";
  if (is("BZh") && start.size() >= 7 && start.substr(4, 3) == "1AY") return "bzip2-compressed";
  if (is("PAR1\x15")) return "a Parquet file";
  if (is("\x89HDF")) return "an HDF5 file";
  if (is("\xFF\xFE") || is("\xFE\xFF")) return "UTF-16 text";
  return nullptr;
}

}  // namespace

struct ByteSource::State {
  std::string name;
  int descriptor = -1;
  bool owns_descriptor = false;
  std::string memory;
  std::size_t memory_used = 0;

  bool gzip = false;
  bool inside_member = false;  // between a gzip header and its checksum
  z_stream inflater = {};
  std::vector<unsigned char> packed;  // raw bytes not yet handed on: [first, last)
  std::size_t first = 0;
  std::size_t last = 0;

  ~State() {
    if (gzip) inflateEnd(&inflater);
    if (owns_descriptor) close(descriptor);
  }

  void start();
  std::size_t read_raw(void* out, std::size_t capacity);
  bool fill_packed();
  bool next_member();
  std::size_t read_gzip(char* out, std::size_t capacity);
};

std::size_t ByteSource::State::read_raw(void* out, std::size_t capacity) {
  if (stop_requested()) throw Interrupted(fmt::format("interrupted while reading {}", name));
  if (descriptor < 0) {
    const std::size_t count = std::min(capacity, memory.size() - memory_used);
    std::memcpy(out, memory.data() + memory_used, count);
    memory_used += count;
    return count;
  }
  for (;;) {
    const ssize_t count = ::read(descriptor, out, capacity);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR && stop_requested(/*now=*/true))
      throw Interrupted(fmt::format("interrupted while reading {}", name));
    if (errno == EISDIR)
      throw IoError(fmt::format("cannot read '{}': it is a folder; name a CSV file", name));
    if (errno != EINTR)
      throw IoError(fmt::format("cannot read '{}': {}", name, std::strerror(errno)));
  }
}

/// Looks at the first bytes: gzip, plain, or something that is not CSV at all.
void ByteSource::State::start() {
  packed.resize(packed_bytes);
  while (last < 8) {  // a pipe may hand out its first bytes one by one
    const std::size_t count = read_raw(packed.data() + last, packed.size() - last);
    if (count == 0) break;
    last += count;
  }
  const std::string_view head(reinterpret_cast<const char*>(packed.data()), last);
  if (const char* format = foreign_format(head))
    throw DataError(fmt::format(
        "{}: this is {}, not a CSV file; convert it to CSV (UTF-8, plain or gzip)", name, format));
  if (last < 2 || packed[0] != 0x1F || packed[1] != 0x8B) return;
  if (inflateInit2(&inflater, 15 + 16) != Z_OK)  // + 16: gzip wrapper, its checksum verified
    throw Error("zlib could not be started");
  gzip = inside_member = true;
}

bool ByteSource::State::fill_packed() {
  if (first == last) {
    first = 0;
    last = read_raw(packed.data(), packed.size());
  }
  return first < last;
}

/// After the end of a member: another one may follow (cat a.gz b.gz), or zero padding.
bool ByteSource::State::next_member() {
  while (fill_packed() && packed[first] == 0) ++first;
  if (!fill_packed()) return false;
  if (packed[first] != 0x1F)
    throw DataError(fmt::format(
        "{}: there are stray bytes after the end of the gzip data; pack it again", name));
  inflateReset(&inflater);
  inside_member = true;
  return true;
}

std::size_t ByteSource::State::read_gzip(char* out, std::size_t capacity) {
  const std::size_t room = std::min<std::size_t>(capacity, std::numeric_limits<uInt>::max());
  for (;;) {
    if (!inside_member && !next_member()) return 0;
    if (!fill_packed())
      throw DataError(fmt::format(
          "{}: the gzip data ends too early; the file is cut short (copy or download it again)",
          name));
    inflater.next_in = packed.data() + first;
    inflater.avail_in = static_cast<uInt>(last - first);
    inflater.next_out = reinterpret_cast<unsigned char*>(out);
    inflater.avail_out = static_cast<uInt>(room);
    const int status = inflate(&inflater, Z_NO_FLUSH);
    first = last - inflater.avail_in;
    if (status != Z_OK && status != Z_STREAM_END)
      throw DataError(fmt::format("{}: the gzip data is damaged ({}); copy or download it again",
                                  name, inflater.msg != nullptr ? inflater.msg : "invalid data"));
    if (status == Z_STREAM_END) inside_member = false;
    if (const std::size_t count = room - inflater.avail_out; count > 0) return count;
  }
}

ByteSource::ByteSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

ByteSource ByteSource::open(const std::string& path) {
  auto state = std::make_unique<State>();
  if (path == "-") {
    state->name = "standard input";
    state->descriptor = STDIN_FILENO;
  } else {
    state->name = path;
    state->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (state->descriptor < 0)
      throw IoError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    state->owns_descriptor = true;
  }
  state->start();
  return ByteSource(std::move(state));
}

ByteSource ByteSource::from_memory(std::string bytes, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->memory = std::move(bytes);
  state->start();
  return ByteSource(std::move(state));
}

std::size_t ByteSource::read(char* out, std::size_t capacity) {
  if (capacity == 0) return 0;
  if (state_->gzip) return state_->read_gzip(out, capacity);
  if (state_->first < state_->last) {
    const std::size_t count = std::min(capacity, state_->last - state_->first);
    std::memcpy(out, state_->packed.data() + state_->first, count);
    state_->first += count;
    return count;
  }
  return state_->read_raw(out, capacity);
}

const std::string& ByteSource::name() const { return state_->name; }
bool ByteSource::is_gzip() const { return state_->gzip; }

}  // namespace mercer::data
