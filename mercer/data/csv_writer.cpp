#include "mercer/data/csv_writer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {

CsvWriter::CsvWriter(const std::string& path, std::vector<std::string> header,
                     std::string_view comment)
    : header_(std::move(header)) {
  if (header_.empty()) throw InvalidArgument("CsvWriter: a CSV file needs at least one column");
  if (comment.find_first_of("\r\n") != std::string_view::npos)
    throw InvalidArgument("CsvWriter: a comment is one line");
  sink_ = std::make_unique<ByteSink>(path);
  if (!comment.empty()) fmt::format_to(std::back_inserter(buffer_), "# {}\n", comment);
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
