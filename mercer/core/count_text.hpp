// Counts as people read them: 1234567 -> "1,234,567".
#pragma once

#include <string>
#include <string_view>

#include "mercer/core/types.hpp"

namespace mercer {

inline std::string count_text(Index value) {
  std::string text = std::to_string(value);
  for (auto place = static_cast<Index>(text.size()) - 3; place > (value < 0 ? 1 : 0); place -= 3)
    text.insert(static_cast<std::size_t>(place), 1, ',');
  return text;
}

/// "1 row", "2,000 rows".
inline std::string plural(Index value, std::string_view noun) {
  return count_text(value) + ' ' + std::string(noun) + (value == 1 ? "" : "s");
}

}  // namespace mercer
