#include "mercer/preconditioners/preconditioner_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mercer::preconditioners {

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
