// Streaming CSV: numbers straight from a large buffer into a block of rows, nothing per field.
//   Format: RFC 4180 (quotes, doubled quotes, newlines inside quotes), CRLF, LF or CR, UTF-8 byte
//           order mark, gzip. Lines above the header that start with '#' are comments; below it
//           '#' is data. Blank lines are skipped.
//   Cost:   one pass, memory of one buffer (which grows to the longest row) and one block.
//   Every error names the file, the line and the column.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/types.hpp"
#include "mercer/data/byte_source.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct CsvOptions {
  std::optional<char> separator;  // unset: of , ; tab | the one that cuts the first rows equally
  std::size_t buffer_bytes = std::size_t{1} << 20;   // grows when a row is longer
  std::size_t max_row_bytes = std::size_t{1} << 30;  // a longer row is an error
  std::optional<std::uint64_t> memory = {};          // a row takes a part of it at most
};

/// The character that `delimiter` names: itself, or tab, comma, semicolon, pipe, space. Throws
/// InvalidArgument when it cannot separate fields.
char separator_of(const std::string& delimiter);

/// Text in a column of numbers. The reader stays before that row.
struct TextInNumbers : DataError {
  TextInNumbers(const std::string& message, Index column_place)
      : DataError(message), column(column_place) {}
  Index column;  // its place in the header
};

/// What the reader did on the way; complete once next() has returned false.
struct CsvInfo {
  char separator = ',';
  bool generated_header = false;  // the first row was numbers: columns are named x1 .. , y
  bool gzip = false;
  Index rows = 0;
  Index comment_lines = 0;  // above the header
  Index blank_lines = 0;
  std::uint64_t bytes = 0;  // of text, after unpacking
};

/// Which columns next() delivers, by their place in the header; the others are skipped unread.
struct CsvSelection {
  std::vector<Index> numeric;
  std::vector<Index> text;
  /// Delivered as they stand in the file, whatever they hold; also columns of the other lists.
  std::vector<Index> raw;
  /// What to do about text in a numeric column, told its name; ends the error message.
  std::function<std::string(const std::string& column)> hint;
  /// Texts that read like a missing cell, but are levels of a text column.
  std::vector<std::string> not_missing = {};
};

/// Some rows. Missing cells are NaN in numeric columns and "" in text columns.
struct CsvBlock {
  Index rows = 0;
  std::vector<double> values;                  // row after row, one per numeric column
  std::vector<std::vector<std::string>> text;  // text[j][row]
  std::vector<std::vector<std::string>> raw;   // raw[j][row], without quotes and blanks around
  std::vector<Index> lines;                    // 1-based line in the file where each row starts
};

class CsvReader {
 public:
  /// Opens `path` ("-": standard input) and reads the header.
  explicit CsvReader(const std::string& path, CsvOptions options = {});
  explicit CsvReader(ByteSource source, CsvOptions options = {});

  const std::string& name() const { return source_.name(); }
  const std::vector<std::string>& header() const { return header_; }
  const CsvInfo& info() const { return info_; }

  /// For the rows that next() delivers from here on; at first all columns are numeric.
  void select(CsvSelection selection);
  /// Whether this column holds text in the first row, which is not consumed. Before next().
  bool begins_with_text(Index column);
  /// Reads up to max_rows rows, fewer where their texts are long; false, with no rows, at the end.
  bool next(CsvBlock& block, Index max_rows);
  /// The next row as it stands in the file, with its line end; false at the end. It is valid until
  /// the next call.
  bool next_text(std::string_view& row);
  /// The header as it stands in the file, with its line end; empty when it was generated.
  const std::string& header_text() const { return header_text_; }

  /// "file: line 5, column 'age': ..." for errors about a delivered cell.
  std::string place(Index line, const std::string& column) const;

 private:
  struct Field {
    std::string_view content;  // without quotes and blanks around
    bool doubled_quotes = false;
    bool stray_text = false;  // something follows the closing quote
  };
  enum class Problem { none, not_a_number, infinite, stray_text };
  struct BadCell {
    Problem problem = Problem::none;
    Index column = 0;
    std::string_view content;
  };
  enum class Kind : unsigned char { skipped, numeric, text };

  struct HeaderRow {
    std::vector<std::string> names;
    std::size_t bytes = 0;  // with its line end
  };

  void read_header();
  char guess_separator();
  std::optional<HeaderRow> parse_header(char separator);
  bool generate_header();
  void check_header() const;
  bool skip_to_row();
  bool skip_line_if_empty();
  bool parse_row(CsvBlock& block);
  bool fast_number(const char*& p, double& value) const;
  bool scan_field(const char*& p, Field& field);
  bool scan_quoted(const char*& p, Field& field);
  bool take_cell(Index column, const Field& field, CsvBlock& block);
  void take_raw(Index column, std::string_view content, bool doubled_quotes, CsvBlock& block);
  bool end_of_field(const char*& p, bool& row_ends) const;
  void refill();
  void compact();
  void grow(std::size_t bytes);
  void fill();
  [[noreturn]] void report(const BadCell& bad) const;
  [[noreturn]] void report_ragged(Index fields) const;
  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != info_.separator; }
  const char* limit() const { return buffer_.data() + size_; }

  ByteSource source_;
  CsvOptions options_;
  CsvInfo info_;
  std::vector<std::string> header_;
  std::string header_text_;
  CsvSelection selection_;
  std::vector<Kind> kinds_;       // per column
  std::vector<Index> slots_;      // per column: place among the numeric, or among the text columns
  std::vector<Index> raw_slots_;  // per column: place among the raw ones, -1: none; empty: no raw

  std::vector<char> buffer_;
  std::size_t position_ = 0;  // of the next row in the buffer
  std::size_t size_ = 0;      // bytes in the buffer
  bool end_of_input_ = false;
  bool past_header_ = false;    // '#' is data from here on
  std::size_t text_bytes_ = 0;  // of the texts in the block
  Index line_ = 1;              // line number at position_
  Index newlines_in_row_ = 0;   // inside quotes, of the row being parsed
  BadCell bad_;                 // first bad cell of the row being parsed
};

}  // namespace mercer::data
MERCER_API_END
