#include "mercer/data/csv_writer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "mercer/core/atomic_file.hpp"
#include "mercer/core/error.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {

/// Where the bytes go: standard output, a device or pipe as it is, or an AtomicFile; gzip on the
/// way.
class CsvWriter::Sink {
 public:
  explicit Sink(const std::string& path) : name_(path) {
    std::error_code ignored;
    if (path == "-") {
      name_ = "standard output";
      stream_ = stdout;
    } else if (std::filesystem::exists(path, ignored) && std::filesystem::is_other(path, ignored)) {
      stream_ =
          std::fopen(path.c_str(), "wb");  // /dev/null, a fifo: never to be replaced by a file
      owns_stream_ = true;
      if (stream_ == nullptr) fail();
    } else {
      file_.emplace(path);
    }
    if (path.size() > 3 && path.ends_with(".gz")) {
      packing_ = deflateInit2(&deflater_, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
      if (!packing_) throw Error("zlib could not be started");
    }
  }
  ~Sink() {
    if (packing_) deflateEnd(&deflater_);
    if (owns_stream_ && stream_ != nullptr) std::fclose(stream_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string_view bytes) {
    if (packing_)
      pack(bytes, Z_NO_FLUSH);
    else
      put(bytes.data(), bytes.size());
  }

  void close() {
    if (packing_) pack({}, Z_FINISH);
    if (file_) return file_->commit();
    if (std::fflush(stream_) != 0) fail();
    if (!owns_stream_) return;
    std::FILE* stream = std::exchange(stream_, nullptr);
    if (std::fclose(stream) != 0) fail();
  }

 private:
  void put(const void* bytes, std::size_t count) {
    if (file_)
      file_->write(bytes, count);
    else if (std::fwrite(bytes, 1, count, stream_) != count)
      fail();
  }

  void pack(std::string_view bytes, int mode) {
    unsigned char out[1 << 15];
    deflater_.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    deflater_.avail_in = static_cast<uInt>(bytes.size());
    do {
      deflater_.next_out = out;
      deflater_.avail_out = sizeof out;
      deflate(&deflater_, mode);
      put(out, sizeof out - deflater_.avail_out);
    } while (deflater_.avail_out == 0);
  }

  [[noreturn]] void fail() const {
    const int reason = errno;
    if (reason == EPIPE)
      throw IoError(
          fmt::format("cannot write to {}: the program that read it has closed it", name_));
    throw IoError(fmt::format("cannot write to {}: {}", name_, std::strerror(reason)));
  }

  std::string name_;
  std::FILE* stream_ = nullptr;
  bool owns_stream_ = false;
  std::optional<AtomicFile> file_;
  bool packing_ = false;
  z_stream deflater_ = {};
};

CsvWriter::CsvWriter(const std::string& path, std::vector<std::string> header)
    : header_(std::move(header)) {
  if (header_.empty()) throw InvalidArgument("CsvWriter: a CSV file needs at least one column");
  sink_ = std::make_unique<Sink>(path);
  for (const auto& name : header_) text(name);
  end_row();
  rows_ = 0;
}

CsvWriter::~CsvWriter() = default;

void CsvWriter::flush() {
  if (sink_ == nullptr) throw Error("CsvWriter: written to after close()");
  sink_->write(buffer_);
  buffer_.clear();
}

void CsvWriter::next_cell() {
  if (cells_ == header_.size())
    throw Error(fmt::format("CsvWriter: row {} has more cells than the {} columns", rows_ + 1,
                            header_.size()));
  if (cells_ > 0) buffer_ += ',';
  ++cells_;
}

CsvWriter& CsvWriter::number(double value) {
  next_cell();
  if (!std::isfinite(value))
    throw Error(
        fmt::format("CsvWriter: row {}, column {}: the value to write is {}, not a finite number",
                    rows_ + 1, shown(header_[cells_ - 1]), value));
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  buffer_.append(digits, end);
  return *this;
}

CsvWriter& CsvWriter::integer(long long value) {
  next_cell();
  fmt::format_to(std::back_inserter(buffer_), "{}", value);
  return *this;
}

CsvWriter& CsvWriter::text(std::string_view value) {
  next_cell();
  // Quoted when it must be: also blanks at the ends, and what would read as a comment or a blank
  // line.
  const bool quotes = value.empty() ||
                      value.find_first_of(",;\t\"\r\n") != std::string_view::npos ||
                      value.front() == '#' || trim(value).size() != value.size();
  if (!quotes) {
    buffer_ += value;
    return *this;
  }
  buffer_ += '"';
  for (const char c : value) {
    if (c == '"') buffer_ += '"';
    buffer_ += c;
  }
  buffer_ += '"';
  return *this;
}

CsvWriter& CsvWriter::missing() {
  next_cell();
  if (header_.size() == 1) buffer_ += "\"\"";  // an empty line would not be a row
  return *this;
}

void CsvWriter::end_row() {
  if (cells_ != header_.size())
    throw Error(fmt::format("CsvWriter: row {} has {} cells, the header has {}", rows_ + 1, cells_,
                            header_.size()));
  buffer_ += '\n';
  cells_ = 0;
  ++rows_;
  if (buffer_.size() > (std::size_t{1} << 18)) flush();
}

void CsvWriter::row(std::span<const double> values) {
  for (const double value : values) number(value);
  end_row();
}

void CsvWriter::rows(ConstMatrixView values) {
  for (Index i = 0; i < values.rows(); ++i) {
    for (Index j = 0; j < values.cols(); ++j) number(values(i, j));
    end_row();
  }
}

void CsvWriter::close() {
  if (sink_ == nullptr) return;
  if (cells_ != 0) throw Error(fmt::format("CsvWriter: row {} is not finished", rows_ + 1));
  flush();
  sink_->close();
  sink_.reset();
}

}  // namespace mercer::data
