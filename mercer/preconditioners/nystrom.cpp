#include "mercer/preconditioners/nystrom.hpp"

#include <fmt/format.h>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"

namespace mercer::preconditioners {
namespace {

Built make_nystrom(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const auto landmarks = landmark_options(n, target.noise, options);
  auto approximation = approximations::nystrom(target.k, landmarks);
  std::string notes = rank_note(n, options);
  if (approximation.exhausted)
    notes += fmt::format("only {} distinct landmarks; ", approximation.pivots.size());
  return build_low_rank(std::move(approximation), target.noise, std::move(notes));
}

Cost cost(Index n, Index, const PreconditionerOptions& options) {
  return nystrom_cost(n, landmark_options(n, 1.0, options));
}

}  // namespace

PreconditionerInfo nystrom_info() {
  return {.name = "nystrom",
          .summary = "landmark columns of K plus noise",
          .make = make_nystrom,
          .cost = cost,
          .takes = {.rank = true, .landmarks = true}};
}

}  // namespace mercer::preconditioners
