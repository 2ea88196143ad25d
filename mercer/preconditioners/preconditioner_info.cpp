#include "mercer/preconditioners/preconditioner_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::preconditioners {

std::string_view to_string(Landmarks landmarks) {
  switch (landmarks) {
    case Landmarks::uniform:
      return "uniform";
    case Landmarks::kmeans:
      return "kmeans";
    case Landmarks::leverage:
      return "leverage";
  }
  return "unknown";
}

Landmarks landmarks(std::string_view name) {
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage})
    if (to_string(choice) == name) return choice;
  throw InvalidArgument(
      fmt::format("there are no landmarks '{}'; there are: uniform, kmeans, leverage", name));
}

Index default_rank(Index n) {
  const auto wanted = static_cast<Index>(4 * std::sqrt(static_cast<double>(n)));
  return std::min({std::max<Index>(wanted, 100), Index{1000}, n});
}

Index effective_rank(Index n, const PreconditionerOptions& options) {
  return std::min(options.rank.value_or(default_rank(n)), n);
}

std::string rank_note(Index n, const PreconditionerOptions& options) {
  if (!options.rank || *options.rank <= n) return "";
  return fmt::format("rank {} cut to the number of points {}; ", *options.rank, n);
}

}  // namespace mercer::preconditioners
