// Numbers and tables as people read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/count_text.hpp"
#include "mercer/core/types.hpp"

namespace mercer::cli {

/// Four significant digits: 0.01234, 123.4, 12340, 1.234e-09.
std::string number(double value, int digits = 4);
/// 1234567 -> "1,234,567".
std::string count(Index value);
/// "0.08 s", "12 s", "3 min 20 s", "2 h 5 min".
std::string duration(double seconds);

/// A name of the JSON as words: iteration_limit -> "iteration limit".
std::string as_words(std::string_view name);

/// Breaks a text into lines of at most 96 characters; those after the first are indented.
std::string wrapped(const std::string& text, int indent);

/// A small table: the first row is the head; columns are as wide as their widest cell.
class Table {
 public:
  /// `align` has one letter per column: 'l' or 'r'.
  Table(std::string align, std::vector<std::string> head);
  void row(std::vector<std::string> cells);
  /// Lines, each indented and ended.
  std::string text(int indent = 2) const;

 private:
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mercer::cli
