// CSV out: numbers in the fewest digits that read back as the same double. A file appears whole or
// not at all (close() puts it there); it is gzip when its name ends in .gz; "-" is standard output.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"
#include "mercer/data/byte_sink.hpp"

MERCER_API_BEGIN
namespace mercer::data {

class CsvWriter {
 public:
  /// Throws IoError when `path` cannot be written. A comment becomes a line `# comment` before the
  /// header, which readers of this library skip.
  CsvWriter(const std::string& path, std::vector<std::string> header,
            std::string_view comment = {});
  /// Without close() before it, a file is not written at all.
  ~CsvWriter();
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  /// The next cell of the row; throws Error for NaN and infinity, naming row and column.
  CsvWriter& number(double value);
  CsvWriter& integer(long long value);
  CsvWriter& text(std::string_view value);
  CsvWriter& missing();
  void end_row();

  void row(std::span<const double> values);
  void rows(ConstMatrixView values);

  /// Writes out what is left; throws IoError if it did not arrive (full disk, closed pipe).
  void close();

 private:
  void next_cell();
  void flush();

  std::unique_ptr<ByteSink> sink_;
  std::vector<std::string> header_;
  std::string buffer_;
  std::size_t cells_ = 0;  // of the row being written
  Index rows_ = 0;
};

}  // namespace mercer::data
MERCER_API_END
