// Columns of text whose rows come block by block and that are wanted one after the other, as the
// arrays of a JSON object are. What is beyond some megabytes goes to a temporary file that has no
// name, so that memory does not depend on the number of rows and nothing is left behind.
//   Cost: every byte is written and read once; the folder is that of TMPDIR, else /tmp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mercer::cli {

class ColumnSpool {
 public:
  /// `memory`: bytes that may be kept before they go to the file.
  explicit ColumnSpool(std::size_t columns, std::size_t memory = std::size_t{1} << 24)
      : columns_(columns), memory_(memory) {}
  ~ColumnSpool();
  ColumnSpool(const ColumnSpool&) = delete;
  ColumnSpool& operator=(const ColumnSpool&) = delete;

  /// Appends to a column. Throws IoError when the temporary file cannot be written.
  void add(std::size_t column, std::string_view text);
  /// All text of a column, piece by piece. Throws Interrupted when a StopScope says so.
  void read(std::size_t column, const std::function<void(std::string_view)>& take);
  /// Bytes that the file has; 0 while there is none.
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Piece {
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
  };
  struct Column {
    std::vector<Piece> pieces;  // in the file
    std::string rest;           // in memory
  };
  void write_out();

  std::vector<Column> columns_;
  std::size_t memory_;
  std::size_t in_memory_ = 0;
  std::uint64_t file_bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace mercer::cli
