#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer::cli {
namespace {

// Levenshtein distance, one row of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  std::size_t least = typed.size() / 3 + 2;  // further away than this is another word
  for (const auto& name : names) {
    const bool beginning = typed.size() >= 3 && name.starts_with(typed);
    const std::size_t distance = beginning ? 0 : edit_distance(typed.substr(0, 64), name);
    if (distance < least && distance < name.size()) {
      least = distance;
      best = &name;
    }
  }
  return best == nullptr ? "" : fmt::format(" (did you mean '{}'?)", *best);
}

void require_choice(std::string_view flag, std::string_view typed,
                    const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), typed) != choices.end()) return;
  throw InvalidArgument(fmt::format("{} '{}' is not known{}; there are: {}", flag, typed,
                                    did_you_mean(typed, choices), fmt::join(choices, ", ")));
}

}  // namespace mercer::cli
