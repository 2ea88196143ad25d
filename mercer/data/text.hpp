// Small questions about a piece of text: is it a number, is it missing, how is it shown in a
// message.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mercer::data {

enum class Cell { number, missing, infinite, text };

/// What a cell holds; `value` is set for numbers only. Surrounding blanks do not count.
/// Missing: empty, NaN, NA, N/A, null, ? (in any case). A number beyond the range of double is
/// infinite.
Cell classify(std::string_view cell, double& value);
bool is_missing(std::string_view cell);

std::string_view trim(std::string_view text);
bool is_utf8(std::string_view text);

/// 'text' in quotes, cut to some forty characters, unprintable bytes as \xNN.
std::string shown(std::string_view text);
/// 'a', 'b', 'c' and 7 more: at most `limit` of them.
std::string shown_list(const std::vector<std::string>& names, std::size_t limit = 20);
/// "no column 'agee'; did you mean 'age'? The columns are 'age', 'height'."
std::string unknown_column(std::string_view name, const std::vector<std::string>& header);

}  // namespace mercer::data
