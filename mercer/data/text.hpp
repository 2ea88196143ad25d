// Small questions about a piece of text: is it a number, is it missing, how is it shown in a
// message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/count_text.hpp"

namespace mercer::data {

enum class Cell { number, missing, infinite, text };

/// What a cell holds; `value` is set for numbers only. Surrounding blanks do not count.
/// Missing: empty, NaN, NA, N/A, #N/A, null, None, ? (in any case). A number beyond the range of
/// double is infinite.
Cell classify(std::string_view cell, double& value);
bool is_missing(std::string_view cell);

/// The content of a quoted field, "" standing for one quote.
std::string unquoted(std::string_view content, bool doubled_quotes);
/// 3,14: a number as it is written where the comma is the decimal point.
bool is_decimal_comma(std::string_view text);

/// Days since 1970-01-01 of 2010-05-31 or 2010/05/31, with a time of day after a T or a blank
/// (12:30, 12:30:15.5, then perhaps Z or +02:00) as a fraction; nothing if it is no such date.
std::optional<double> parse_date(std::string_view text);
/// Why that is so, and what to write.
std::string date_advice(std::string_view text);
/// 31.12.2010, 5/6/10: a date to a person, whose order of day and month is not known.
bool is_ambiguous_date(std::string_view text);

std::string_view trim(std::string_view text);
bool is_utf8(std::string_view text);

/// Where control characters are kept: nowhere, at line ends and tabs, or in JSON, whose escapes
/// differ.
enum class Plain { words, lines, json };
/// The text with everything escaped that could steer a terminal: control characters, bytes that are
/// not UTF-8 (\x1b) and marks that turn the direction of writing (\u202e). Letters stay as they
/// are.
std::string printable(std::string_view text, Plain plain = Plain::words);

/// Whether a column of this name is likely to number the rows: id, row_id, Index, No.
bool reads_like_id(std::string_view name);
/// 'text' in quotes, cut to some forty characters, unprintable bytes as \xNN.
std::string shown(std::string_view text);
/// 'a', 'b', 'c' and 7 more: at most `limit` of them.
std::string shown_list(const std::vector<std::string>& names, std::size_t limit = 20);
/// a,b,"c,d": names as the options take them, in quotes where one has a comma.
std::string joined_names(const std::vector<std::string>& names);
/// "no column 'agee'; did you mean 'age'? The columns are 'age', 'height'."
std::string unknown_column(std::string_view name, const std::vector<std::string>& header);

}  // namespace mercer::data
