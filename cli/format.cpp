#include "cli/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mercer::cli {

std::string number(double value, int digits) {
  if (!std::isfinite(value)) return "unknown";
  const double size = std::abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return fmt::format("{:.{}e}", value, digits - 1);
  if (size >= std::pow(10.0, digits - 1)) return fmt::format("{:.0f}", value);
  return fmt::format("{:#.{}g}", value, digits);
}

std::string count(Index value) { return count_text(value); }

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "an unknown time";
  if (seconds < 0.095) return fmt::format("{:.2g} s", seconds);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  const long long whole = std::llround(std::min(seconds, 1e15));
  if (whole < 5400) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 172800) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} days", count(whole / 86400));
}

std::string as_words(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string wrapped(const std::string& text, int indent) {
  constexpr std::size_t width = 96;
  std::string out;
  std::size_t column = static_cast<std::size_t>(indent);
  std::size_t first = 0;
  while (first < text.size()) {
    const std::size_t end = std::min(text.find(' ', first), text.size());
    const bool fits = column + (end - first) + 1 <= width;
    if (first > 0) out += fits ? ' ' : '\n';
    if (first > 0 && !fits) out.append(static_cast<std::size_t>(indent), ' ');
    if (!fits) column = static_cast<std::size_t>(indent);
    out.append(text, first, end - first);
    column += end - first + 1;
    first = end + 1;
  }
  return out;
}

Table::Table(std::string align, std::vector<std::string> head) : align_(std::move(align)) {
  rows_.push_back(std::move(head));
}

void Table::row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::text(int indent) const {
  std::vector<std::size_t> widths(align_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t j = 0; j < row.size(); ++j) widths[j] = std::max(widths[j], row[j].size());
  std::string out;
  for (const auto& row : rows_) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::string gap = j == 0 ? "" : "  ";
      line += align_[j] == 'r' ? fmt::format("{}{:>{}}", gap, row[j], widths[j])
                               : fmt::format("{}{:<{}}", gap, row[j], widths[j]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace mercer::cli
