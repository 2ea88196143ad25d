// The first rows of a CSV file: which character separates its fields, and what its columns are
// called.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "mercer/core/error.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

constexpr std::size_t max_columns = 1'000'000;
constexpr std::array candidates = {',', ';', '\t', '|'};
// Of the text, and of its rows, that the separator is guessed from.
constexpr std::size_t sample_bytes = std::size_t{1} << 16, sample_rows = 100;

/// Counts the fields of the whole rows of `text`; the last one is whole only if `complete`.
class FieldCounter {
 public:
  FieldCounter(std::string_view text, char separator, bool complete)
      : text_(text), separator_(separator), complete_(complete) {}

  std::vector<std::size_t> counts() {
    std::vector<std::size_t> out;
    while (at_ < text_.size() && out.size() < sample_rows) {
      std::size_t fields = 0;
      blank_ = true;
      do {
        if (!skip_field()) return out;
        ++fields;
      } while (at_ < text_.size() && text_[at_] == separator_ && ++at_ > 0);
      if (at_ == text_.size() && !complete_) return out;
      if (fields > 1 || !blank_) out.push_back(fields);
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    }
    return out;
  }

 private:
  bool ends_field(char c) const { return c == separator_ || c == '\n' || c == '\r'; }
  /// To the separator or line end; false if a quote is not closed in the text.
  bool skip_field() {
    const auto blank = [this](char c) { return (c == ' ' || c == '\t') && c != separator_; };
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      do {
        const auto quote = text_.find('"', at_ + 1);
        if (quote == std::string_view::npos) return false;
        at_ = quote + 1;
      } while (at_ < text_.size() && text_[at_] == '"');
      blank_ = false;
    }
    for (; at_ < text_.size() && !ends_field(text_[at_]); ++at_) blank_ = false;
    return true;
  }

  std::string_view text_;
  char separator_;
  bool complete_;
  bool blank_ = true;
  std::size_t at_ = 0;
};

}  // namespace

char separator_of(const std::string& delimiter) {
  for (const auto& [word, character] : {std::pair("tab", '\t'),
                                        {"\\t", '\t'},
                                        {"comma", ','},
                                        {"semicolon", ';'},
                                        {"pipe", '|'},
                                        {"space", ' '}})
    if (delimiter == word) return character;
  const auto byte = static_cast<unsigned char>(delimiter.empty() ? 'a' : delimiter[0]);
  const bool part_of_numbers = (byte >= '0' && byte <= '9') || (byte | 32U) - 'a' < 26U;
  if (delimiter.size() != 1 || byte >= 0x7F || (byte < 0x20 && byte != '\t') || part_of_numbers ||
      std::strchr("\"#+-.", byte) != nullptr)
    throw InvalidArgument(
        fmt::format("`delimiter` is {}, which cannot separate fields; it is one character such as "
                    "; or |, or one of the words tab, comma, semicolon, pipe, space",
                    shown(delimiter)));
  return delimiter[0];
}

/// Of the candidates that cut the first rows into equally many fields the one with most of them;
/// where none does, the one whose rows most often agree with the header. The comma is the first.
char CsvReader::guess_separator() {
  for (std::size_t wanted = sample_bytes;; wanted *= 2) {
    compact();
    if (buffer_.size() < wanted) grow(wanted);
    fill();
    const std::string_view text(buffer_.data(), std::min(size_, wanted));
    const bool complete = end_of_input_ && text.size() == size_;
    bool enough = complete || buffer_.size() >= options_.max_row_bytes;
    char best = ',';
    double best_share = 0;
    std::size_t most_fields = 1;
    for (const char candidate : candidates) {
      const auto counts = FieldCounter(text, candidate, complete).counts();
      enough = enough || counts.size() > 1;
      if (counts.empty() || counts[0] < 2) continue;
      const auto agree = std::count(counts.begin(), counts.end(), counts[0]);
      const double share = static_cast<double>(agree) / static_cast<double>(counts.size());
      if (share < best_share || (share == best_share && (share < 1 || counts[0] <= most_fields)))
        continue;
      best = candidate;
      best_share = share;
      most_fields = counts[0];
    }
    if (enough) return best;
  }
}

/// The fields of the row at position_, not moving past it; nothing if the buffer ends first.
std::optional<CsvReader::HeaderRow> CsvReader::parse_header(char separator) {
  info_.separator = separator;
  newlines_in_row_ = 0;
  HeaderRow row;
  const char* const start = buffer_.data() + position_;
  const char* p = start;
  for (bool row_ends = false; !row_ends;) {
    Field field;
    if (!scan_field(p, field)) return std::nullopt;
    if (field.stray_text)
      throw DataError(
          fmt::format("{}: line {}: in the name of column {} there is text after the closing quote",
                      name(), line_, row.names.size() + 1));
    if (row.names.size() == max_columns)
      throw DataError(
          fmt::format("{}: line {}: there are more than {} columns", name(), line_, max_columns));
    row.names.emplace_back(trim(unquoted(field.content, field.doubled_quotes)));
    if (!end_of_field(p, row_ends)) return std::nullopt;
  }
  row.bytes = static_cast<std::size_t>(p - start);
  return row;
}

void CsvReader::read_header() {
  refill();
  if (size_ >= 3 && std::memcmp(buffer_.data(), "\xEF\xBB\xBF", 3) == 0) position_ = 3;
  if (!skip_to_row()) throw DataError(fmt::format("{}: the file is empty", name()));
  const auto read_with = [this](char separator) {
    for (;;) {
      if (auto row = parse_header(separator)) return std::move(*row);
      refill();
    }
  };
  HeaderRow row = read_with(options_.separator ? *options_.separator : guess_separator());
  past_header_ = true;
  header_ = std::move(row.names);
  if (generate_header()) return;
  check_header();
  header_text_.assign(buffer_.data() + position_, row.bytes);
  position_ += row.bytes;
  line_ += 1 + newlines_in_row_;
}

/// A first row of numbers is data without a header: columns are then x1, x2, ..., y.
bool CsvReader::generate_header() {
  double value = 0;
  bool any_number = false;
  for (const auto& cell : header_) {
    const Cell kind = classify(cell, value);
    if (kind != Cell::number && kind != Cell::missing) return false;
    any_number = any_number || kind == Cell::number;
  }
  if (!any_number) return false;
  for (std::size_t j = 0; j + 1 < header_.size(); ++j) header_[j] = fmt::format("x{}", j + 1);
  header_.back().assign(1, 'y');  // = "y" makes GCC 12 warn of an overlap that cannot be
  info_.generated_header = true;
  return true;
}

/// Names must be there, differ and be UTF-8.
void CsvReader::check_header() const {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t j = 0; j < header_.size(); ++j) {
    const auto where = [&] { return fmt::format("{}: line {}", name(), line_); };
    if (header_[j].empty())
      throw DataError(
          fmt::format("{}: column {} of {} has no name{}", where(), j + 1, header_.size(),
                      j == 0 ? " (if it is a pandas index, write the file with index=False)" : ""));
    if (!is_utf8(header_[j]))
      throw DataError(
          fmt::format("{}: the name of column {}, {}, is not UTF-8; convert the file to UTF-8",
                      where(), j + 1, shown(header_[j])));
    const auto [other, fresh] = seen.emplace(header_[j], j);
    if (!fresh)
      throw DataError(fmt::format("{}: columns {} and {} have the same name {}; rename one",
                                  where(), other->second + 1, j + 1, shown(header_[j])));
  }
}

}  // namespace mercer::data
