#include "mercer/data/byte_sink.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "mercer/core/atomic_file.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"

namespace mercer::data {

struct ByteSink::State {
  std::string name;
  std::FILE* stream = nullptr;
  bool owns_stream = false;
  std::optional<AtomicFile> file;
  bool packing = false;
  z_stream deflater = {};

  ~State() {
    if (packing) deflateEnd(&deflater);
    if (owns_stream && stream != nullptr) std::fclose(stream);
  }

  void put(const void* bytes, std::size_t count) {
    if (file)
      file->write(bytes, count);
    else if (std::fwrite(bytes, 1, count, stream) != count)
      fail();
  }

  void pack(std::string_view bytes, int mode) {
    unsigned char out[1 << 15];
    deflater.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    deflater.avail_in = static_cast<uInt>(bytes.size());
    do {
      deflater.next_out = out;
      deflater.avail_out = sizeof out;
      deflate(&deflater, mode);
      put(out, sizeof out - deflater.avail_out);
    } while (deflater.avail_out == 0);
  }

  [[noreturn]] void fail() const {
    const int reason = errno;
    if (reason == EPIPE)
      throw BrokenPipe(
          fmt::format("cannot write to {}: the program that read it has closed it", name));
    throw IoError(fmt::format("cannot write to {}: {}", name, std::strerror(reason)));
  }
};

ByteSink::ByteSink(const std::string& path) : state_(std::make_unique<State>()) {
  auto& s = *state_;
  s.name = path;
  std::error_code ignored;
  if (path == "-") {
    s.name = "standard output";
    s.stream = stdout;
  } else if (std::filesystem::exists(path, ignored) && std::filesystem::is_other(path, ignored)) {
    s.stream = std::fopen(path.c_str(), "wb");  // /dev/null, a fifo: never to be replaced by a file
    s.owns_stream = true;
    if (s.stream == nullptr) s.fail();
  } else {
    s.file.emplace(path);
  }
  if (path.size() > 3 && path.ends_with(".gz")) {
    s.packing = deflateInit2(&s.deflater, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!s.packing) throw Error("zlib could not be started");
  }
}

ByteSink::~ByteSink() = default;

void ByteSink::write(std::string_view bytes) {
  constexpr std::size_t most = std::size_t{1} << 28;  // zlib counts in 32 bits
  for (std::size_t first = 0; first < bytes.size(); first += most) {
    if (stop_requested(/*now=*/true))
      throw Interrupted(fmt::format("interrupted while writing {}", state_->name));
    const auto piece = bytes.substr(first, most);
    if (state_->packing)
      state_->pack(piece, Z_NO_FLUSH);
    else
      state_->put(piece.data(), piece.size());
  }
}

void ByteSink::close() {
  auto& s = *state_;
  if (s.packing) s.pack({}, Z_FINISH);
  if (s.file) return s.file->commit();
  if (std::fflush(s.stream) != 0) s.fail();
  if (!s.owns_stream) return;
  std::FILE* stream = std::exchange(s.stream, nullptr);
  if (std::fclose(stream) != 0) s.fail();
}

}  // namespace mercer::data
