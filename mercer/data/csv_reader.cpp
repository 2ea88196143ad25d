#include "mercer/data/csv_reader.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

// Of the texts in one block, about.
constexpr std::size_t block_text_bytes = std::size_t{16} << 20;

}  // namespace

CsvReader::CsvReader(const std::string& path, CsvOptions options)
    : CsvReader(ByteSource::open(path), options) {}

CsvReader::CsvReader(ByteSource source, CsvOptions options)
    : source_(std::move(source)),
      options_(options),
      buffer_(std::max<std::size_t>(8, options.buffer_bytes)) {
  if (options_.separator) separator_of({*options_.separator});
  if (options_.memory) {
    // A buffer that doubles, the text of a cell and its place among the levels: some five copies.
    const auto left = *options_.memory - std::min(*options_.memory, program_bytes);
    options_.max_row_bytes = std::min<std::size_t>(
        options_.max_row_bytes, std::max<std::size_t>(left / 8, std::size_t{1} << 16));
  }
  info_.gzip = source_.is_gzip();
  read_header();
  CsvSelection all;
  for (std::size_t j = 0; j < header_.size(); ++j) all.numeric.push_back(static_cast<Index>(j));
  select(std::move(all));
}

void CsvReader::select(CsvSelection selection) {
  const auto mark = [this](const std::vector<Index>& columns, Kind kind) {
    for (std::size_t slot = 0; slot < columns.size(); ++slot) {
      const auto column = static_cast<std::size_t>(columns[slot]);
      if (columns[slot] < 0 || column >= kinds_.size() || kinds_[column] != Kind::skipped)
        throw InvalidArgument(fmt::format(
            "CsvReader: column number {} is not there or selected twice", columns[slot]));
      kinds_[column] = kind;
      slots_[column] = static_cast<Index>(slot);
    }
  };
  kinds_.assign(header_.size(), Kind::skipped);
  slots_.assign(header_.size(), 0);
  mark(selection.numeric, Kind::numeric);
  mark(selection.text, Kind::text);
  raw_slots_.assign(selection.raw.empty() ? 0 : header_.size(), -1);
  for (std::size_t slot = 0; slot < selection.raw.size(); ++slot)
    raw_slots_.at(static_cast<std::size_t>(selection.raw[slot])) = static_cast<Index>(slot);
  selection_ = std::move(selection);
}

bool CsvReader::next(CsvBlock& block, Index max_rows) {
  if (max_rows < 1) throw InvalidArgument("CsvReader: a block needs at least one row");
  const std::size_t width = selection_.numeric.size();
  block.rows = 0;
  block.values.resize(static_cast<std::size_t>(max_rows) * width);
  block.lines.clear();
  block.text.resize(selection_.text.size());
  for (auto& column : block.text) column.resize(static_cast<std::size_t>(max_rows));
  block.raw.resize(selection_.raw.size());
  for (auto& column : block.raw) column.resize(static_cast<std::size_t>(max_rows));

  text_bytes_ = 0;
  while (block.rows < max_rows && text_bytes_ < block_text_bytes && skip_to_row()) {
    if (!parse_row(block)) {
      refill();
      continue;
    }
    block.lines.push_back(line_);
    ++block.rows;
    ++info_.rows;
    line_ += 1 + newlines_in_row_;
  }
  block.values.resize(static_cast<std::size_t>(block.rows) * width);
  for (auto* columns : {&block.text, &block.raw})
    for (auto& column : *columns) column.resize(static_cast<std::size_t>(block.rows));
  if (block.rows == 0 && info_.rows == 0)
    throw DataError(fmt::format("{}: there is a header but no row of data below it", name()));
  return block.rows > 0;
}

bool CsvReader::begins_with_text(Index column) {
  while (skip_to_row()) {
    const char* p = buffer_.data() + position_;
    bool whole = true, row_ends = false;
    for (Index j = 0; whole && !row_ends; ++j) {
      Field field;
      whole = scan_field(p, field);
      double value = 0;
      if (whole && j == column) return classify(field.content, value) == Cell::text;
      whole = whole && end_of_field(p, row_ends);
    }
    if (row_ends) return false;  // too few fields: next() will say so
    refill();
  }
  return false;
}

bool CsvReader::next_text(std::string_view& row) {
  while (skip_to_row()) {
    const char* p = buffer_.data() + position_;
    bool whole = true, row_ends = false;
    newlines_in_row_ = 0;
    Index fields = 0;
    for (; whole && !row_ends; ++fields) {
      Field field;
      whole = scan_field(p, field) && end_of_field(p, row_ends);
    }
    if (!whole) {
      refill();
      continue;
    }
    if (fields != static_cast<Index>(header_.size())) report_ragged(fields);
    const auto end = static_cast<std::size_t>(p - buffer_.data());
    row = {buffer_.data() + position_, end - position_};
    position_ = end;
    ++info_.rows;
    line_ += 1 + newlines_in_row_;
    return true;
  }
  return false;
}

/// Moves the unread bytes to the front and fills the buffer, which doubles if a row fills it all.
void CsvReader::refill() {
  if (position_ > 0)
    compact();
  else if (size_ == buffer_.size())
    grow(2 * size_);
  fill();
}

void CsvReader::compact() {
  std::memmove(buffer_.data(), buffer_.data() + position_, size_ - position_);
  size_ -= position_;
  position_ = 0;
}

void CsvReader::grow(std::size_t bytes) {
  if (size_ >= options_.max_row_bytes) {
    const auto where = fmt::format("{}: line {}: the row is longer than", name(), line_);
    if (options_.memory)
      throw DoesNotFit(fmt::format(
          "{} {}, the most that a memory of {} has room for; is a quote left open? Otherwise "
          "shorten the row, or give more `memory`",
          where, format_bytes(static_cast<double>(options_.max_row_bytes)),
          format_bytes(static_cast<double>(*options_.memory))));
    throw DataError(fmt::format("{} {} bytes; is a quote left open, or is this not a CSV file?",
                                where, options_.max_row_bytes));
  }
  buffer_.resize(std::min(bytes, std::max(options_.max_row_bytes, size_ + 1)));
}

void CsvReader::fill() {
  while (size_ < buffer_.size() && !end_of_input_) {
    const std::size_t count = source_.read(buffer_.data() + size_, buffer_.size() - size_);
    end_of_input_ = count == 0;
    info_.bytes += count;
    const auto* zero = static_cast<const char*>(std::memchr(buffer_.data() + size_, '\0', count));
    if (zero != nullptr)
      throw DataError(fmt::format(
          "{}: line {}: there is a zero byte; this is binary or UTF-16, not CSV text in UTF-8",
          name(), line_ + std::count<const char*>(buffer_.data(), zero, '\n')));
    size_ += count;
  }
}

/// Position at the next row, past comments and blank lines; false at the end of the input.
bool CsvReader::skip_to_row() {
  for (;;) {
    if (position_ == size_) {
      if (end_of_input_) return false;
      refill();
      continue;
    }
    const char c = buffer_[position_];
    if ((c != '#' || past_header_) && c != '\n' && c != '\r' && !is_blank(c)) return true;
    const auto before = position_;
    if (!skip_line_if_empty()) {
      refill();
    } else if (position_ == before) {
      return true;  // blanks, then something: a row
    }
  }
}

/// Moves past a comment or blank line, not past anything else; false if the buffer ends first.
bool CsvReader::skip_line_if_empty() {
  const char* p = buffer_.data() + position_;
  const bool comment = *p == '#' && !past_header_;
  while (p != limit() && *p != '\n' && *p != '\r') {
    if (!comment && !is_blank(*p)) return true;
    ++p;
  }
  if (p == limit() && !end_of_input_) return false;
  if (p != limit() && *p == '\r') {
    if (p + 1 == limit() && !end_of_input_) return false;
    ++p;
    if (p != limit() && *p == '\n') ++p;
  } else if (p != limit()) {
    ++p;
  }
  ++(comment ? info_.comment_lines : info_.blank_lines);
  ++line_;
  position_ = static_cast<std::size_t>(p - buffer_.data());
  return true;
}

/// One row from position_ into the next row of `block`; false, and nothing moved, if the buffer
/// ends before the row does.
bool CsvReader::parse_row(CsvBlock& block) {
  const auto columns = static_cast<Index>(header_.size());
  double* out =
      block.values.data() + static_cast<std::size_t>(block.rows) * selection_.numeric.size();
  const char* p = buffer_.data() + position_;
  newlines_in_row_ = 0;
  bad_ = {};
  Index column = 0;
  for (bool row_ends = false; !row_ends; ++column) {
    double value = 0;
    const char* const start = p;
    if (column < columns && kinds_[static_cast<std::size_t>(column)] == Kind::numeric &&
        fast_number(p, value)) {
      out[slots_[static_cast<std::size_t>(column)]] = value;
      take_raw(column, trim({start, static_cast<std::size_t>(p - start)}), false, block);
    } else {
      Field field;
      if (!scan_field(p, field)) return false;
      if (bad_.problem == Problem::none && column < columns && !take_cell(column, field, block))
        bad_.content = field.content;
      if (column < columns) take_raw(column, field.content, field.doubled_quotes, block);
    }
    if (!end_of_field(p, row_ends)) return false;
  }
  // A row with too few or too many fields explains its bad cells, so it is told first.
  if (column != columns) report_ragged(column);
  if (bad_.problem != Problem::none) report(bad_);
  position_ = static_cast<std::size_t>(p - buffer_.data());
  return true;
}

/// The usual case: an unquoted finite number that ends where the field ends. Otherwise p stays.
bool CsvReader::fast_number(const char*& p, double& value) const {
  const char* q = p;
  while (q != limit() && is_blank(*q)) ++q;
  const auto result = fast_float::from_chars(q, limit(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) return false;
  q = result.ptr;
  while (q != limit() && is_blank(*q)) ++q;
  if (q == limit() ? !end_of_input_ : (*q != info_.separator && *q != '\n' && *q != '\r'))
    return false;
  p = q;
  return true;
}

/// Any field; p ends at its terminator. False if the buffer ends first.
bool CsvReader::scan_field(const char*& p, Field& field) {
  const char* q = p;
  while (q != limit() && is_blank(*q)) ++q;
  if (q != limit() && *q == '"') {
    if (!scan_quoted(q, field)) return false;
  } else {
    const char* start = q;
    while (q != limit() && *q != info_.separator && *q != '\n' && *q != '\r') ++q;
    const char* end = q;
    while (end != start && is_blank(end[-1])) --end;
    field.content = {start, static_cast<std::size_t>(end - start)};
  }
  if (q == limit() && !end_of_input_) return false;
  p = q;
  return true;
}

bool CsvReader::scan_quoted(const char*& p, Field& field) {
  const char* start = ++p;
  for (;;) {
    const auto* quote =
        static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(limit() - p)));
    if (quote == nullptr) {
      if (!end_of_input_) return false;
      throw DataError(
          fmt::format("{}: line {}: a quote is opened and never closed", name(), line_));
    }
    p = quote + 1;
    if (p == limit() && !end_of_input_) return false;
    if (p == limit() || *p != '"') break;
    field.doubled_quotes = true;
    ++p;
  }
  field.content = {start, static_cast<std::size_t>(p - 1 - start)};
  newlines_in_row_ += std::count(field.content.begin(), field.content.end(), '\n');
  while (p != limit() && is_blank(*p)) ++p;
  while (p != limit() && *p != info_.separator && *p != '\n' && *p != '\r') {
    field.stray_text = true;
    ++p;
  }
  return true;
}

/// Moves past a separator or a line end; false if the buffer ends before it is known which.
bool CsvReader::end_of_field(const char*& p, bool& row_ends) const {
  row_ends = p == limit() || *p != info_.separator;
  if (p == limit()) return true;  // the end of the input: scan_field has made sure
  if (*p == '\r') {
    if (p + 1 == limit() && !end_of_input_) return false;
    ++p;
    if (p != limit() && *p == '\n') ++p;
    return true;
  }
  ++p;
  return true;
}

/// Puts a cell where it belongs; false, with bad_ set, if it cannot be there.
bool CsvReader::take_cell(Index column, const Field& field, CsvBlock& block) {
  const auto j = static_cast<std::size_t>(column);
  if (field.stray_text) {
    bad_ = {Problem::stray_text, column, {}};
    return false;
  }
  if (kinds_[j] == Kind::text) {
    auto& cell =
        block.text[static_cast<std::size_t>(slots_[j])][static_cast<std::size_t>(block.rows)];
    const auto& kept = selection_.not_missing;
    const bool missing = is_missing(field.content) &&
                         std::find(kept.begin(), kept.end(), field.content) == kept.end();
    cell = missing ? std::string() : unquoted(field.content, field.doubled_quotes);
    text_bytes_ += cell.size();
  } else if (kinds_[j] == Kind::numeric) {
    double value = std::numeric_limits<double>::quiet_NaN();
    const Cell cell = classify(field.content, value);
    if (cell == Cell::text || cell == Cell::infinite) {
      bad_ = {cell == Cell::text ? Problem::not_a_number : Problem::infinite, column, {}};
      return false;
    }
    block.values[static_cast<std::size_t>(block.rows) * selection_.numeric.size() +
                 static_cast<std::size_t>(slots_[j])] = value;
  }
  return true;
}

void CsvReader::take_raw(Index column, std::string_view content, bool doubled_quotes,
                         CsvBlock& block) {
  const Index slot = raw_slots_.empty() ? -1 : raw_slots_[static_cast<std::size_t>(column)];
  if (slot < 0) return;
  block.raw[static_cast<std::size_t>(slot)][static_cast<std::size_t>(block.rows)] =
      unquoted(content, doubled_quotes);
  text_bytes_ += content.size();
}

std::string CsvReader::place(Index line, const std::string& column) const {
  return fmt::format("{}: line {}, column {}", name(), line, shown(column));
}

void CsvReader::report(const BadCell& bad) const {
  const std::string& column = header_[static_cast<std::size_t>(bad.column)];
  const std::string where = place(line_, column);
  if (bad.problem == Problem::infinite)
    throw DataError(fmt::format("{}: infinite value {}; leave the cell empty if it is not known",
                                where, shown(bad.content)));
  if (bad.problem == Problem::stray_text)
    throw DataError(fmt::format(
        "{}: there is text after the closing quote (a quote inside a field is written twice)",
        where));
  std::string advice = selection_.hint ? selection_.hint(column) : "the column must be numeric";
  if (is_decimal_comma(bad.content)) advice = "write it with a decimal point";
  if (bad.content.starts_with('#') && bad.column == 0)
    advice += "; a comment may stand only above the header";
  throw TextInNumbers(fmt::format("{}: {} is not a number; {}", where, shown(bad.content), advice),
                      bad.column);
}

void CsvReader::report_ragged(Index fields) const {
  const bool comment = buffer_[position_] == '#';
  throw DataError(fmt::format("{}: line {} has {} field{}, the {} has {}{}", name(), line_, fields,
                              fields == 1 ? "" : "s",
                              info_.generated_header ? "first row" : "header", header_.size(),
                              comment ? "; a comment may stand only above the header" : ""));
}

}  // namespace mercer::data
